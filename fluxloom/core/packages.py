"""Packages whose public names are imported when they are first asked for, so that one name costs one module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["import_late"]


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
