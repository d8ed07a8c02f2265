"""The end of a run by a number that does not change any more: a lift, a Nusselt number, a mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from typing import Any, Literal

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.status import Goal
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.results import ResultFolder

__all__ = ["Plateau"]

_LINES = 3
"""Lines of the history that a window has at least."""


class Plateau(Monitor):
    r"""A run has converged when a column of its history stays as it is.

    With the values :math:`x` of the lines in the last window that is :math:`\max x - \min x \le \epsilon\,|\bar x|`. A
    value that is not finite in the window, and a column that has had one value since the beginning, are no plateau.

    Parameters
    ----------
    column
        Of ``history.csv``.
    tolerance
        :math:`\epsilon`.
    window
        For how long, in steps or in time of the flow.
    over
        ``"steps"`` or ``"time"``.

    Raises
    ------
    SolverError
        If a number is not above 0.
    """

    name, remembers, behind_history = "stop", ("memory",), True

    def __init__(
        self, column: str, tolerance: float = 1e-4, window: float = 1000.0, over: Literal["steps", "time"] = "steps"
    ) -> None:  # fmt: skip
        for what, value in (("tolerance", tolerance), ("window", window)):
            if not (isfinite(value) and value > 0.0):
                raise SolverError(f"plateau: {what}: a number above 0 is wanted, not {value!r}")
        self.column, self.tolerance, self.window, self.over = column, float(tolerance), float(window), over
        self._run: Watched | None = None
        self._samples: list[tuple[float, float]] = []
        """Steps or time, and the value there, back to the beginning of the window."""
        self._first, self._changed = nan, False
        self._seen = 0

    @property
    def memory(self) -> dict[str, Any]:
        """The values of the window, the first one, and whether there were others since. Collective."""
        self._watched.history.collect()
        self.stepped()
        return {"samples": self._samples, "first": self._first, "changed": self._changed}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self._samples = [(float(at), float(value)) for at, value in memory["samples"]]
        self._first, self._changed = float(memory["first"]), bool(memory["changed"])

    @property
    def _watched(self) -> Watched:
        if self._run is None:
            raise SolverError("plateau: there is no run yet that has this monitor")
        return self._run

    def attach(self, run: Watched) -> None:
        """Find the column. Collective.

        Raises
        ------
        SolverError
            If there is none of this name, or no history, or too few of its lines are in the window.
        """
        every, columns = run.history.every, run.columns()
        if not every:
            raise SolverError(f"column {self.column!r}: the run has no history: give history.every above 0")
        if self.column not in columns:
            there = ", ".join(columns)
            raise SolverError(f"no column {self.column!r}{did_you_mean(self.column, columns)} (columns: {there})")
        if self.over == "time" and run.flow.time is None:
            raise SolverError("a flow on the way to a steady one has no time: give the window in steps")
        if self.over == "steps" and self.window < (_LINES - 1) * every:
            raise SolverError(
                f"a window of {self.window:g} steps has fewer than {_LINES} lines of the history, which come every "
                f"{every} steps: give a longer one, or a smaller history.every"
            )
        self._run = run

    def changed(self) -> None:
        """Forget the values of the flow before."""
        self._samples, self._first, self._changed = [], nan, False

    def begin(self, folder: ResultFolder) -> None:
        """Begin with the first line."""
        super().begin(folder)
        self._seen = len(self._watched.history.rows)
        if not self._samples:
            self._take()

    def stepped(self) -> None:
        """Look whether there is a new line."""
        count = len(self._watched.history.rows)
        if count > self._seen:
            self._seen = count
            self._take()

    def _take(self) -> None:
        """Keep the value of the last line."""
        history = self._watched.history
        value = float(history.rows[-1][history.names.index(self.column)])
        now = float(history.at[self.over == "time"])
        self._samples.append((now, value))
        if isfinite(value):
            self._changed = self._changed or (isfinite(self._first) and value != self._first)
            self._first = self._first if isfinite(self._first) else value
        begins = now - self.window
        while len(self._samples) > 1 and self._samples[1][0] <= begins:
            del self._samples[0]

    def change(self) -> float:
        """Return the change in the window, over the mean; infinite: it is not long enough, or nothing was computed."""
        values = [value for _, value in self._samples]
        if not (self._whole and self._changed and all(isfinite(value) for value in values)):
            return inf
        spread, mean = max(values) - min(values), abs(sum(values) / len(values))
        return 0.0 if spread == 0.0 else (spread / mean if mean > 0.0 else inf)

    @property
    def _whole(self) -> bool:
        """Whether the samples are as long as the window."""
        return len(self._samples) >= _LINES and self._samples[0][0] <= self._samples[-1][0] - self.window

    def goals(self) -> Sequence[Goal]:
        """Return the tolerance, and how far the column is."""
        change, name = self.change(), f"change of {self.column}"
        if change == inf:
            name += self._unknown()
        return [Goal("stop.column", name, self.tolerance, change, change <= self.tolerance)]

    def _unknown(self) -> str:
        """Return in words why there is no change."""
        if not self._whole:
            return f" in a window of {self.window:g}{' steps' if self.over == 'steps' else ''}, longer than the run,"
        if not all(isfinite(value) for _, value in self._samples):
            return ", which has been no finite number in the window,"
        return ", whose mean is 0," if self._changed else ", which has had one value since the beginning,"
