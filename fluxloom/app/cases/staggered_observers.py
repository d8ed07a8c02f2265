"""What a case of flow on a staggered grid looks at while it runs: forces on sides, averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_plan import COMPONENTS
from fluxloom.app.cases.staggered_tables import StaggeredStatisticsTable
from fluxloom.app.files import atomic
from fluxloom.solvers.staggered import Staggered
from fluxloom.solvers.staggered_forces import StaggeredForces
from fluxloom.solvers.staggered_statistics import PlaneAverages, StaggeredStatistics

__all__ = ["StaggeredAveragesObserver", "StaggeredForcesObserver"]


class StaggeredForcesObserver(Observer):
    """The force on some sides as columns."""

    def __init__(self, flow: Staggered, name: str, sides: Sequence[str]) -> None:
        self.name, self.forces = name, StaggeredForces(flow, sides)

    def columns(self) -> dict[str, float]:
        """Return the components."""
        return {f"{self.name}.force_{'xyz'[k]}": float(value) for k, value in enumerate(self.forces.now())}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return them in one row."""
        return ((self.name, "force " + ", ".join(f"{value:.7g}" for value in self.forces.now())),)


class StaggeredAveragesObserver(Observer):
    """Averages over time, as fields, and over planes too in ``profile.csv``.

    Samples count with the time since the look before.
    """

    name, remembers = "statistics", ("_before",)

    def __init__(self, flow: Staggered, table: StaggeredStatisticsTable) -> None:
        self._flow, self._table = flow, table
        self.statistics = StaggeredStatistics(flow)
        self._before, self._due = flow.time, True

    def stepped(self) -> None:
        """Sample, where it is due."""
        self._due = self._flow.steps % self._table.every == 0
        if self._due:
            self._sample()

    def _sample(self) -> None:
        time = self._flow.time
        if time >= self._table.start:
            self.statistics.sample(time - self._before)
        self._before = time

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the mean velocity."""
        if not self.statistics.samples:
            return {}
        mean = self.statistics.velocity()
        return {f"{name}_mean": mean[:, k].copy() for k, name in enumerate(COMPONENTS[: self._flow.dimension])}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how much has been averaged."""
        found = self.statistics
        return (("averages", f"{found.samples:,} samples, over a time of {found.weight:.6g}"),)

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write the profile."""
        if not self._due:
            self._sample()
        axis = self._table.profile
        if axis and self.statistics.samples:
            planes = self.statistics.planes("xyz".index(axis))
            self.folder.write("profile.csv", lambda path: _write_profile(path, axis, planes))


def _write_profile(path: Path, axis: str, profile: PlaneAverages) -> None:
    """Write averages over planes as a table with a heading."""
    names = COMPONENTS[: profile.velocity.shape[1]]
    columns = {axis: profile.coordinate} | {name: profile.velocity[:, k] for k, name in enumerate(names)}
    with np.errstate(all="ignore"):  # of a flow that was lost
        columns |= {f"{name}_rms": np.sqrt(np.maximum(profile.stress[:, k, k], 0.0)) for k, name in enumerate(names)}
    pairs = [(i, k) for i in range(len(names)) for k in range(i + 1, len(names))]
    columns |= {names[i] + names[k]: profile.stress[:, i, k] for i, k in pairs}
    columns |= {"p": profile.pressure, "p_rms": np.sqrt(np.maximum(profile.pressure_variance, 0.0))}
    table = np.stack(list(columns.values()), axis=1)
    with atomic(path) as temporary:
        np.savetxt(temporary, table, fmt="%.9g", delimiter=",", header=",".join(columns), comments="")
