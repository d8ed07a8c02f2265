"""The values of globals that the host saw, so that a run that is skipped gives them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.declare.dats import Global

__all__ = ["GlobalLog"]


class GlobalLog:
    """For each global: after which calls the host looked, and what it saw.

    The control flow of a program can depend on globals only through values that the host reads. Logged is what each
    global holds when the host first looks at anything after a call that changed it; what the host itself sets in
    between it sets again when the program is run again.
    """

    def __init__(self) -> None:
        self.globals: list[Global] = []
        self._numbers: dict[int, int] = {}
        self._versions: list[int] = []
        self._positions: list[list[int]] = []
        self._values: list[list[npt.NDArray[Any]]] = []
        self._cursors: list[int] = []
        self._stale: set[int] = set()

    def meet(self, found: Sequence[Global]) -> None:
        """Remember globals that calls change or read."""
        for item in found:
            if id(item) not in self._numbers:
                self._numbers[id(item)] = len(self.globals)
                self.globals.append(item)
                self._versions.append(item.version)
                if len(self._positions) < len(self.globals):
                    self._positions.append([])
                    self._values.append([])
                    self._cursors.append(0)

    # ---------------------------------------------------------------------------------------- recording
    def look(self, position: int) -> None:
        """Log every global that has changed since it was last logged; ``position`` counts calls.

        Only the first look after a call counts. A global whose sum over the ranks has not been formed is left for
        later: nobody has seen it yet. Not collective.
        """
        for number, item in enumerate(self.globals):
            if item.version == self._versions[number] or item.waiting is not None:
                continue
            self._versions[number] = item.version
            positions = self._positions[number]
            if not positions or positions[-1] < position:
                positions.append(position)
                self._values[number].append(np.array(item.value, copy=True))

    # ----------------------------------------------------------------------------------------- replaying
    def skip(self, changed: Sequence[Global], position: int) -> None:
        """Note that a call was skipped; give globals the values that the host saw after it."""
        self._stale.update(id(item) for item in changed)
        for number, cursor in enumerate(self._cursors):
            if number == len(self.globals):
                break
            positions = self._positions[number]
            while cursor < len(positions) and positions[cursor] < position:
                cursor += 1
            if cursor < len(positions) and positions[cursor] == position:
                item = self.globals[number]
                item.value = self._values[number][cursor]
                self._stale.discard(id(item))
            self._cursors[number] = cursor

    def unknown(self) -> list[str]:
        """Return the names of globals that skipped calls have changed, and whose values nobody logged since."""
        return [item.name for item in self.globals if id(item) in self._stale]

    def is_unknown(self, item: Global) -> bool:
        """Whether a global is one of those."""
        return id(item) in self._stale

    def resume(self) -> None:
        """Record again: from here on calls run."""
        self._stale.clear()
        self._versions = [item.version for item in self.globals]

    # -------------------------------------------------------------------------------------------- files
    def now(self) -> list[npt.NDArray[Any]]:
        """Return the values of all globals; on several ranks collective."""
        return [np.array(item.value, copy=True) for item in self.globals]

    def arrays(self, values: Sequence[npt.NDArray[Any]], before: int) -> dict[str, npt.NDArray[Any]]:
        """Return what a file holds: values at the entry, and what was logged before a call."""
        found: dict[str, npt.NDArray[Any]] = {}
        for number, value in enumerate(values):
            count = int(np.searchsorted(self._positions[number], before))
            shape, dtype = value.shape, value.dtype
            found[f"globals/{number:04d}/value"] = value
            found[f"globals/{number:04d}/after_call"] = np.array(self._positions[number][:count], dtype=np.int64)
            logged = np.array(self._values[number][:count], dtype=dtype).reshape(count, *shape)
            found[f"globals/{number:04d}/logged"] = logged
        return found

    def load(self, arrays: Mapping[str, npt.NDArray[Any]], count: int) -> None:
        """Take over what a file holds, before any global was met."""
        for number in range(count):
            positions = [int(p) for p in arrays[f"globals/{number:04d}/after_call"]]
            self._positions.append(positions)
            self._values.append(list(arrays[f"globals/{number:04d}/logged"]))
            self._cursors.append(0)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], names: Sequence[str], where: str) -> None:
        """Give all globals the values at the entry.

        Raises
        ------
        CheckpointError
            When they are not those of the file.
        """
        here = [item.name for item in self.globals]
        if here[: len(names)] != list(names):
            raise CheckpointError(
                f"{where}: the checkpoint is of another program: its globals are {', '.join(names) or 'none'}, "
                f"here they are {', '.join(here) or 'none'}; remove it to start from the beginning"
            )
        for number in range(len(names)):
            value, item = arrays[f"globals/{number:04d}/value"], self.globals[number]
            if value.shape != item.shape or value.dtype != item.scalar.numpy:
                raise CheckpointError(
                    f"{where}: the global {item.name!r} is {value.dtype} of shape {value.shape} in the checkpoint, "
                    f"{item.scalar.name} of shape {item.shape} here; remove it to start from the beginning"
                )
            item.value = value
