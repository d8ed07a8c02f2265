"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from fluxloom.core.errors import DeviceUnavailable

__all__ = ["require"]


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
