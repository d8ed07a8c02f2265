"""``history.csv``: numbers of a flow over time, a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.app.files import Lines

__all__ = ["History"]

Columns = Callable[[], Mapping[str, float]]


class History:
    """A table that grows while a run advances; every line is on disk at once.

    Parameters
    ----------
    every
        Steps between two lines; 0: never a line.
    parts
        Each returns some columns, always the same ones; on several ranks all of them are collective.
    """

    def __init__(self, every: int, parts: Sequence[Columns]) -> None:
        self.every, self._parts = every, tuple(parts)
        self.names: tuple[str, ...] = ()
        self.rows: list[tuple[float, ...]] = []
        self._lines: Lines | None = None

    def begin(self, path: Path | None) -> None:
        """Open the file, and write what there is; None: this rank writes nothing."""
        if self.every:
            self._sample()
            self._lines = Lines(path, ",".join(self.names))
            self._write(self.rows[-1])

    def stepped(self, steps: int, *, last: bool = False) -> None:
        """Add a line behind a step where one is due, and behind the last one."""
        if self.every and self.rows and (steps % self.every == 0 or last):
            self._sample()
            self._write(self.rows[-1])

    def finish(self) -> bool:
        """Close the file; return whether there is one."""
        if self._lines is not None:
            self._lines.close()
        return self._lines is not None

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of all lines."""
        place = self.names.index(name)
        return np.array([row[place] for row in self.rows])

    def panels(self) -> tuple[npt.NDArray[np.float64], list[tuple[str, list[tuple[str, npt.NDArray[np.float64]]]]]]:
        """Return the times, and what belongs into one panel of a picture: a label, names and values of lines."""
        panels = [("kinetic energy", [("", self.column("kinetic_energy"))])]
        panels.append(("energy per time", [(name, self.column(name)) for name in ("dissipation", "decay")]))
        return self.column("time"), panels

    def _sample(self) -> None:
        found: dict[str, float] = {}
        for part in self._parts:
            found |= part()
        self.names = tuple(found)
        self.rows.append(tuple(found.values()))

    def _write(self, row: tuple[float, ...]) -> None:
        if self._lines is not None:
            self._lines.add(",".join(f"{value:.12g}" for value in row))
