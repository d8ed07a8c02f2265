"""Packages that are imported late: their public names, so that one name costs one module, and optional ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from fluxloom.core.errors import DeviceUnavailable, FluxloomError

__all__ = ["guarded", "import_late", "require"]


class LatePackage(ModuleType):
    """A package with names that stand in its modules; see `import_late`."""

    _places: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        """Import what stands behind a name when it is first asked for, and keep it."""
        place = self._places.get(name)
        if place is not None:
            module, _, attribute = place.partition(":")
            found = import_module(module)
            found = getattr(found, attribute) if attribute else found
            vars(self)[name] = found
            return found
        if f"{self.__name__}.{name}" in {place.partition(":")[0] for place in self._places.values()}:
            return import_module(f"{self.__name__}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; but a module that was imported takes no public name of the package (``mesh.check``)."""
        if not (isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}" and name in self._places):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """Return the names, imported or not."""
        return sorted({*vars(self), *self._places})


def import_late(package: str, names: Mapping[str, str]) -> Mapping[str, str]:
    """Make the public names of a package ones that are imported when they are first asked for.

    Imports under ``TYPE_CHECKING`` say the same to checkers of types.

    Parameters
    ----------
    package
        Its ``__name__``.
    names
        Module to names in it, with blanks between; ``read=read_data``: its ``read`` is here ``read_data``. No name: the
        module itself, under its last word.

    Returns
    -------
    dict
        Where each name is: ``"module:name"``, or ``"module"``.
    """
    places: dict[str, str] = {}
    for module, words in names.items():
        for word in words.split():
            theirs, _, ours = word.partition("=")
            places[ours or theirs] = f"{module}:{theirs}"
        if not words:
            places[module.rpartition(".")[2]] = module
    found = sys.modules[package]
    vars(found)["_places"] = places
    found.__class__ = LatePackage
    return places


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
