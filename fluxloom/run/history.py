"""``history.csv``: numbers of a flow over time, a line now and then.

A flow whose device has memory of its own may keep the numbers of a line there (`Flow.take`): then the host fetches them
before the next line is due, and never waits for the steps in between. Each line of the file but the last is written
when the next one is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.run.flow import HistoryPanel
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.files import Lines
from fluxloom.run.results.results import ResultFolder

__all__ = ["History"]

Array = npt.NDArray[np.float64]


class History(Monitor):
    """A table that grows while a run advances; every line is on disk at once. It comes behind all other monitors.

    Parameters
    ----------
    every
        Steps between two lines; 0: never a line.
    """

    name, remembers = "history", ("memory",)

    def __init__(self, every: int = 10) -> None:
        self.every = every
        self._run: Watched | None = None
        self.names: tuple[str, ...] = ()
        self.rows: list[tuple[float, ...]] = []
        self.at = (0, 0.0)
        """Step and time of the flow of the last line."""
        self._lines: Lines | None = None
        self._early = False  # the last row is there only because the run ended
        self._due = True  # the row of the last step is there
        self._taken = False  # the flow keeps the numbers of a line that is not there yet
        self._before: tuple[tuple[str, ...], list[tuple[float, ...]]] | None = None

    @property
    def memory(self) -> dict[str, Any]:
        """Names of the columns, and the rows that a run that goes on has: one for its end alone is left out."""
        self.collect()
        return {"names": list(self.names), "rows": self.rows[:-1] if self._early else self.rows}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self.recall(memory)

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take the rows that `memory` had."""
        self._before = tuple(memory["names"]), [tuple(row) for row in memory["rows"]]

    def attach(self, run: Watched) -> None:
        """Hear of the run whose columns are asked for."""
        self._run = run

    def begin(self, folder: ResultFolder) -> None:
        """Open the file, and write what there is."""
        if self.every:
            self._sample()
            if self._before is not None and self._before[1]:
                now, self.rows = self.rows[0], [_arranged(row, self._before[0], self.names) for row in self._before[1]]
                self._due = now[0] == self.rows[-1][0]  # else the last one, without a step
            self.folder = folder
            self._lines = folder.lines("history.csv", ",".join(self.names), [_line(row) for row in self.rows])

    @property
    def _steps(self) -> int:
        assert self._run is not None
        return self._run.flow.steps

    def stepped(self) -> None:
        """Add a line behind a step where one is due, or write the one before and let the flow keep its numbers."""
        run = self._run
        assert run is not None
        self._due = bool(self.every) and self._steps % self.every == 0
        if self._due and self.rows:
            self.collect()
            self._taken = run.looks_back and run.flow.take()
            if not self._taken:
                self._add()

    def collect(self) -> None:
        """Write the line whose numbers the flow has kept, if there is one. Collective."""
        if self._taken:
            assert self._run is not None
            self._taken = False
            with self._run.flow.looking_back():
                self._add()

    def _add(self) -> None:
        self._sample()
        self._write(self.rows[-1])

    def finish(self) -> None:
        """Add the line of the last step, if it is not there, and close the file."""
        self.collect()
        if self._lines is not None and not self._due:
            self._early = True
            self._add()
        self.folder.closed("history.csv", self._lines)

    def column(self, name: str) -> Array:
        """Return a column of all lines."""
        self.collect()
        place = self.names.index(name)
        return np.array([row[place] for row in self.rows])

    def panels(self, over: str, panels: Sequence[HistoryPanel]) -> tuple[str, Array, list[tuple[HistoryPanel, Array]]]:
        """Return a column's name and its values, and for each panel the values of its lines, ``(rows, lines)``."""
        found = [(panel, np.stack([self.column(name) for name in panel.columns], axis=1)) for panel in panels]
        return over, self.column(over), found

    def _sample(self) -> None:
        assert self._run is not None
        found, flow = dict(self._run.columns()), self._run.flow
        self.at = flow.steps, flow.time or 0.0
        before = dict(zip(self.names, self.rows[-1], strict=True)) if self.rows else {}
        for name, of in flow.losses.items() if before else ():
            passed = found["time"] - before["time"]
            if name in found and passed > 0.0:
                found[name] = (before[of] - found[of]) / passed
        self.names = tuple(found)
        self.rows.append(tuple(found.values()))

    def _write(self, row: tuple[float, ...]) -> None:
        if self._lines is not None:
            self._lines.add(_line(row))


def _line(row: tuple[float, ...]) -> str:
    return ",".join(f"{value:.12g}" for value in row)


def _arranged(row: tuple[float, ...], before: Sequence[str], now: Sequence[str]) -> tuple[float, ...]:
    """Return a row of other columns in the order of these; what was not among them is not known."""
    known = dict(zip(before, row, strict=True))
    return tuple(known.get(name, nan) for name in now)
