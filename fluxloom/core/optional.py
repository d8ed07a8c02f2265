"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from fluxloom.core.errors import DeviceUnavailable, FluxloomError

__all__ = ["guarded", "require"]


_PLAIN = (ValueError, OSError, RuntimeError)
"""Errors whose text alone says what is wrong."""

_MOST = 300


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a package.

    Parameters
    ----------
    module
        Its import name.
    extra
        The extra of fluxloom that installs it.
    purpose
        What it is needed for, as in ``"reading Gmsh files"``.

    Raises
    ------
    DeviceUnavailable
        When it is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        message = f"{purpose} needs {package}, which is not installed: pip install 'fluxloom[{extra}]'"
        raise DeviceUnavailable(message) from error


@contextmanager
def guarded(what: str, advice: str, error: type[FluxloomError], said: Callable[[], str] = str) -> Iterator[None]:
    """Make one line of whatever a library raises within: it may be an assertion, an index, or the end of the process.

    Parameters
    ----------
    what
        File and library, as in ``"wing.vtk: meshio cannot read the file"``.
    advice
        What to do.
    error
        What is raised instead; errors of this package go through as they are.
    said
        What the library printed.
    """
    try:
        yield
    except FluxloomError:
        raise
    except (Exception, SystemExit) as problem:
        plain = isinstance(problem, _PLAIN) or type(problem) is Exception
        text = str(problem) if plain else f"{type(problem).__name__} {problem}"
        if isinstance(problem, OSError) and problem.strerror:
            text = problem.strerror
        if isinstance(problem, SystemExit):
            text = said()
        raise error(f"{what}: {' '.join(text.split())[:_MOST]}; {advice}") from problem
