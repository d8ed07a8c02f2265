"""Averages of a flow over time: when samples are taken, and the profile over directions that is written of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.flows.flow_plan import COMPONENTS
from fluxloom.run.files import write_table
from fluxloom.run.monitor import Sampler, Stepping
from fluxloom.solvers.flow_types import Profile

__all__ = ["AveragesObserver", "SampleObserver"]

Array = npt.NDArray[np.float64]


class _Flow(Stepping, Protocol):
    time: float


class SampleObserver(Sampler):
    """Samples that count with the time since the look before."""

    name, remembers = "statistics", ("_before",)

    def __init__(self, flow: _Flow, every: int) -> None:
        super().__init__(flow, every)
        self._flow, self._before = flow, flow.time


class _Statistics(Protocol):
    samples: int
    weight: float

    def sample(self, weight: float) -> object: ...
    def velocity(self) -> Array: ...
    def profile(self, axis: str, bins: int | None = None) -> Profile: ...


class AveragesObserver(SampleObserver):
    """Averages of incompressible flow, as fields, and over directions too in ``profile.csv``.

    Parameters
    ----------
    flow, statistics
        What is sampled, and what sums it up.
    every
        Steps between two samples.
    profile, bins
        The axis that is left, and its intervals; empty: there is no profile; 0: each coordinate is a place.
    """

    def __init__(self, flow: _Flow, statistics: _Statistics, every: int, profile: str, bins: int = 0) -> None:
        super().__init__(flow, every)
        self.statistics, self._profile = statistics, (profile, bins or None)

    def _sample(self) -> None:
        time = self._flow.time
        self.statistics.sample(time - self._before)
        self._before = time

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the mean velocity."""
        if not self.statistics.samples:
            return {}
        return {f"{name}_mean": mean.copy() for name, mean in zip(COMPONENTS, self.statistics.velocity().T)}  # noqa: B905

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how much has been averaged."""
        found = self.statistics
        return (("averages", f"{found.samples:,} samples, over a time of {found.weight:.6g}"),)

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write the profile."""
        super().finish()
        axis, bins = self._profile
        if axis and self.statistics.samples:
            found = self.statistics.profile(axis, bins)
            self.folder.write("profile.csv", lambda path: _write_profile(path, axis, found))


def _write_profile(path: Path, axis: str, profile: Profile) -> None:
    """Write a profile as a table with a heading."""
    names = COMPONENTS[: profile.velocity.shape[1]]
    columns = {axis: profile.coordinate}
    columns |= {name: profile.velocity[:, k] for k, name in enumerate(names)}
    with np.errstate(all="ignore"):  # of a flow that was lost
        columns |= {f"{name}_rms": profile.rms[:, k] for k, name in enumerate(names)}
    pairs = [(i, k) for i in range(len(names)) for k in range(i + 1, len(names))]
    columns |= {names[i] + names[k]: profile.stress[:, i, k] for i, k in pairs}
    columns |= {"p": profile.pressure, "p_rms": np.sqrt(np.maximum(profile.pressure_variance, 0.0))}
    for name, scalar in profile.scalars.items():
        columns |= {name: scalar.mean, f"{name}_rms": np.sqrt(np.maximum(scalar.variance, 0.0))}
        columns |= {f"{names[k]}_{name}": scalar.flux[:, k] for k in range(len(names))}
    write_table(path, columns)
