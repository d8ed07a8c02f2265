"""Averages of a flow over time: when samples are taken, and what is written of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.monitors.running_means import Profile, RunningMeans
from fluxloom.run.fields import Fields, Quantity
from fluxloom.run.moments import Moments
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.files import write_table
from fluxloom.run.results.results import ResultFolder

__all__ = ["Averages"]


class Averages(Monitor):
    """Means, root mean squares and Reynolds's stresses as fields, and over directions too in ``profile.csv``.

    A sample counts with the time since the sample before; of a flow on the way to a steady one all count alike.
    Averages of velocities are plain ones, not weighted with the density.

    Parameters
    ----------
    start
        Time before which nothing is sampled; of a flow on the way to a steady one its step.
    every
        Steps between two samples.
    profile
        ``"x"``, ``"y"`` or ``"z"``: the direction that is left in the profile; empty: there is none.
    bins
        Equal intervals along it; 0: each coordinate of elements is a place of its own.

    Raises
    ------
    SolverError
        If a number does not fit.
    """

    name, remembers = "statistics", ("_before",)

    def __init__(self, start: float = 0.0, every: int = 1, profile: str = "", bins: int = 0) -> None:
        if not isfinite(start):
            raise SolverError(f"averages: start: a finite time is wanted, not {start!r}")
        if every < 1:
            raise SolverError(f"averages: every: a number of steps of at least 1 is wanted, not {every!r}")
        self.start, self.moments, self.axis, self.bins = float(start), Moments(every), profile, bins
        self._run: Watched | None = None
        self._means: RunningMeans | None = None
        self._before, self._due = 0.0, True

    @property
    def _watched(self) -> Watched:
        assert self._run is not None
        return self._run

    @property
    def means(self) -> RunningMeans:
        """The samples so far.

        Raises
        ------
        SolverError
            Before there is a run.
        """
        if self._means is None:
            raise SolverError("averages: there is no run yet that has this monitor")
        return self._means

    def profile(self) -> Profile:
        """Return the profile that is wanted. Collective.

        Raises
        ------
        SolverError
            If none is wanted, or there is no sample yet.
        """
        return self.means.profile(self.axis, self.bins)

    def attach(self, run: Watched) -> None:
        """Find what is averaged.

        Raises
        ------
        SolverError
            If the flow has nothing, or there is no such direction.
        """
        self._run, self._means = run, RunningMeans(run.flow.averaged())
        if self.axis:
            self._means.check_axis(self.axis, self.bins)
        self._before = run.flow.now

    def stepped(self) -> None:
        """Sample, where it is due."""
        self._due = self.moments.come(self._watched.flow)
        if self._due:
            self._sample()

    def _sample(self) -> None:
        now, before = self._watched.flow.now, self._before
        self._before = now
        if now >= self.start:
            self.means.sample(1.0 if self._watched.flow.time is None else now - before)

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return means, root mean squares, stresses and fluxes: unknown ones by name alone before the first sample."""
        if self._means is None:
            return {}
        found = self._means.quantities()
        if self._means.samples:
            return Fields(found)
        count = len(self._means.averaged.sizes())
        unknown = {name: Quantity(q.unit, q.description, lambda: np.full(count, np.nan)) for name, q in found.items()}
        return Fields({}, unknown)

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how much has been averaged."""
        if not self.means.samples:
            flow = self._watched.flow
            now = f"step {flow.steps:,}" if flow.time is None else f"time {flow.time:.6g}"
            lost = ", and no profile.csv" if self.axis else ""
            return (("averages", f"no samples{lost}: they start at {self.start:g}, the run ended at {now}"),)
        over = "" if self._watched.flow.time is None else f", over a time of {self.means.weight:.6g}"
        return (("averages", f"{self.means.samples:,} samples{over}"),)

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write the profile."""
        if not self._due:
            self._due = True
            self._sample()
        if self.axis and self.means.samples:
            found = self.profile()
            self.folder.write("profile.csv", lambda path: _write(path, found))

    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go."""
        super().begin(folder)
        self._due = self._before == self._watched.flow.now  # else the last one, without a step


def _write(path: Path, profile: Profile) -> None:
    """Write a profile as a table with a heading."""
    write_table(path, {profile.axis: profile.coordinate, **profile.columns})
