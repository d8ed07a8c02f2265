"""What a case of flow on a staggered grid looks at while it runs: forces on sides, averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_monitors import AveragesObserver
from fluxloom.app.cases.flow_plan import COMPONENTS
from fluxloom.app.cases.staggered_tables import StaggeredStatisticsTable
from fluxloom.app.files import write_table
from fluxloom.app.observer import Observer
from fluxloom.app.results.folder import ResultFolder
from fluxloom.solvers.staggered import Staggered
from fluxloom.solvers.staggered_forces import StaggeredForces
from fluxloom.solvers.staggered_statistics import PlaneAverages, StaggeredStatistics

__all__ = ["StaggeredForcesObserver", "averages_observer"]


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


def averages_observer(flow: Staggered, table: StaggeredStatisticsTable) -> AveragesObserver:
    """Return what averages the flow: the mean velocity as fields, averages over planes too in ``profile.csv``."""
    statistics = StaggeredStatistics(flow)

    def fields() -> Mapping[str, npt.NDArray[Any]]:
        """Return the mean velocity."""
        mean = statistics.velocity()
        return {f"{name}_mean": mean[:, k].copy() for k, name in enumerate(COMPONENTS[: flow.dimension])}

    def finish(folder: ResultFolder) -> None:
        """Write the profile."""
        if axis := table.profile:
            planes = statistics.planes("xyz".index(axis))
            folder.write("profile.csv", lambda path: _write_profile(path, axis, planes))

    return AveragesObserver(flow, statistics, table, fields, finish)


def _write_profile(path: Path, axis: str, profile: PlaneAverages) -> None:
    """Write averages over planes as a table with a heading."""
    names = COMPONENTS[: profile.velocity.shape[1]]
    columns = {axis: profile.coordinate} | {name: profile.velocity[:, k] for k, name in enumerate(names)}
    with np.errstate(all="ignore"):  # of a flow that was lost
        columns |= {f"{name}_rms": np.sqrt(np.maximum(profile.stress[:, k, k], 0.0)) for k, name in enumerate(names)}
    pairs = [(i, k) for i in range(len(names)) for k in range(i + 1, len(names))]
    columns |= {names[i] + names[k]: profile.stress[:, i, k] for i, k in pairs}
    columns |= {"p": profile.pressure, "p_rms": np.sqrt(np.maximum(profile.pressure_variance, 0.0))}
    write_table(path, columns)
