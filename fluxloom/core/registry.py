"""Named choices (mesh formats, devices, cases ...) with a helpful answer to a wrong name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Generic, TypeVar

from fluxloom.core.errors import FluxloomError, did_you_mean

__all__ = ["Registry", "load_object"]

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from names to choices, open to third parties through entry points.

    Parameters
    ----------
    what
        The noun used in error messages (``"mesh format"``).
    group
        Entry-point group: names that packages declare there count too; each entry is loaded when it is asked for.
    error
        The error type raised for an unknown name.
    """

    def __init__(self, what: str, *, group: str = "", error: type[FluxloomError] = FluxloomError) -> None:
        self.what = what
        self._group = group
        self._error = error
        self._items: dict[str, T] = {}
        self._later: dict[str, tuple[str, Callable[[], T]]] = {}
        """Places of choices that are loaded when they are asked for, and what loads them."""
        self._loaded = not group

    def register(self, name: str, item: T) -> T:
        """Add a choice and return it; a name may be given once.

        One that was to be loaded later may come by itself, when the module that it is in is imported.
        """
        if name in self._later and _package(self._later[name][0]) == _package(getattr(item, "__module__", "")):
            del self._later[name]
        self._check_new(name)
        self._items[name] = item
        return item

    def later(self, name: str, place: str, *given: Any) -> None:
        """Add a choice that is made when it is first asked for: ``"module:Class"`` is imported then, and called.

        To import what all choices need can take longer than what the chosen one does.
        """
        self._check_new(name)
        self._later[name] = place, lambda: load_object(place)(*given)

    def place(self, name: str, place: str) -> None:
        """Add a choice that is imported when it is first asked for: what is at ``"module:name"``."""
        self._check_new(name)
        self._later[name] = place, lambda: load_object(place)

    def _check_new(self, name: str) -> None:
        if name in self:
            raise self._error(f"{self.what} {name!r} is registered twice")

    def decorator(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers the decorated object under ``name``."""

        def add(item: T) -> T:
            return self.register(name, item)

        return add

    def __getitem__(self, name: str) -> T:
        if name not in self:
            self._load_entry_points()
        if name in self._later:
            found = self._later[name][1]()
            self._later.pop(name, None)
            self._items[name] = found
        if name not in self._items:
            allowed = ", ".join(self.names())
            raise self._error(f"unknown {self.what} {name!r}{did_you_mean(name, self)} (known: {allowed})")
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items or name in self._later

    def __iter__(self) -> Iterator[str]:
        return iter([*self._items, *self._later])

    def names(self) -> list[str]:
        """Return every known name, sorted, third-party ones included."""
        self._load_entry_points()
        return sorted(self)

    def _load_entry_points(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for entry in entry_points(group=self._group):
            if entry.name not in self:
                self._later[entry.name] = entry.value, entry.load


def _package(place: str) -> str:
    """Return the package of a module, or of a place in one."""
    return place.partition(":")[0].partition(".")[0]


def load_object(place: str) -> Any:
    """Return what ``"module:name"`` says, its module imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def entry_points(*, group: str) -> Iterable[Any]:
    """Return the entry points of a group; what reads them takes long to import."""
    from importlib import metadata

    return metadata.entry_points(group=group)
