"""Plans of a context: what belongs to a set is kept with it, and goes with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

__all__ = ["Plans"]


Made = TypeVar("Made")


class Keeper(Protocol):
    """What plans can be kept with: a set."""

    plans: dict[Hashable, Any]


class Plans(dict[Hashable, Any]):
    """What is made once a context, by its key; what is made once a set is in the dictionary that `of` returns."""

    def __init__(self) -> None:
        super().__init__()
        self._sets: WeakSet[Keeper] = WeakSet()

    def of(self, over: Keeper) -> dict[Hashable, Any]:
        """Return what is kept with a set: plans hold the maps that lead from it, which are freed when it is."""
        self._sets.add(over)
        return over.plans

    def once(self, over: Keeper, key: Hashable, make: Callable[[], Made], *held: object) -> Made:
        """Return what is kept with a set by its key, made if it is not there yet; ``held`` lives as long."""
        known = self.of(over)
        if key not in known:
            known[key] = (make(), held)
        return known[key][0]

    def known(self) -> set[Hashable]:
        """Return the keys of all that is kept."""
        return {*self, *(key for over in self._sets for key in over.plans)}

    def forget(self, known: Collection[Hashable]) -> None:
        """Drop what has other keys."""
        for kept in (self, *(over.plans for over in self._sets)):
            for key in [key for key in kept if key not in known]:
                del kept[key]
