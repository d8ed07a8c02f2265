"""Statistics of a flow in time: means, Reynolds stresses, and profiles over what is alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.fv.flow_averages import average_flow, average_scalar
from fluxloom.solvers.flow_types import Profile, ScalarAverage, symmetric
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["Statistics"]

Array = npt.NDArray[np.float64]

_SAME = 1e-7
"""How far apart coordinates of one place may be, as a part of the extent of the mesh."""


class Statistics:
    """Running averages of the velocity, the pressure and the scalars of a flow, weighted by the length of steps.

    A sample is one chain of loops on the device. `mean`, `moments` and `scalars` are the whole state beside `weight`
    and `samples`, see `resume`. On several ranks everything is collective, and cells are those that a rank owns.

    Parameters
    ----------
    flow
        Whose.
    start
        Time before which `sample` does nothing.

    Attributes
    ----------
    mean : (cells, d + 1)
        Of the velocity and the pressure.
    moments : (cells, d (d + 1) / 2 + 1)
        Covariances, see `fluxloom.fv.flow_averages`.
    scalars
        Name to mean, variance and covariances with the velocity, ``(cells, 2 + d)``.
    weight, samples
        Time averaged over, and samples so far.

    Raises
    ------
    SolverError
        If ``start`` is not a finite number.
    """

    remembers = ("weight", "samples")

    def __init__(self, flow: Incompressible, start: float = 0.0) -> None:
        if not np.isfinite(start):
            raise SolverError(f"statistics: start: a finite time is wanted, not {start!r}")
        self.flow, self.start = flow, float(start)
        ctx, d = flow.context, flow.dimension
        self.weight, self.samples = 0.0, 0
        self.mean = ctx.dat(flow.cells, name="mean", shape=(d + 1,))
        self.moments = ctx.dat(flow.cells, name="moments", shape=(d * (d + 1) // 2 + 1,))
        self.scalars = {name: ctx.dat(flow.cells, name=f"{name}.moments", shape=(2 + d,)) for name in flow.scalars.all}
        self._share, self._scale = ctx.scalar(0.0, "share"), ctx.scalar(1.0, "scale")
        inside = ctx.map(flow.cells, flow.elements, flow.spaces.inside[:, None], "inside")
        u = flow.u[inside[0]]
        self._sample = Chain([
            *(Loop(average_scalar, flow.cells, flow.scalars[name].theta[inside[0]], u, self.mean, self._share, found,
                   d=d)
              for name, found in self.scalars.items()),
            Loop(average_flow, flow.cells, u, flow.phi, self._scale, self._share, self.mean, self.moments, d=d),
        ], name="statistics")  # fmt: skip

    # ------------------------------------------------------------------------------ sampling
    def sample(self, weight: float | None = None) -> bool:
        """Add what the flow is now, weighted by its last step; return whether it is late enough.

        Raises
        ------
        SolverError
            If there was no step yet, or the weight is not positive.
        """
        if self.flow.time < self.start:
            return False
        share = self.flow.dt if weight is None else weight
        if not np.isfinite(share) or share <= 0:
            why = "make a step before, or give a weight" if weight is None else "a positive number is wanted"
            raise SolverError(f"statistics: a sample of weight {share!r}: {why}")
        self.weight += float(share)
        self.samples += 1
        self._share.value, self._scale.value = share / self.weight, 1.0 / self.flow.impulse
        self._sample()
        return True

    def reset(self) -> None:
        """Forget all samples: the next one starts anew."""
        self.weight, self.samples = 0.0, 0
        for dat in (self.mean, self.moments, *self.scalars.values()):
            dat.write(np.zeros(dat.shape))

    def resume(self, weight: float, samples: int) -> None:
        """Go on with the values that `mean`, `moments` and `scalars` were given, of so many samples.

        Raises
        ------
        SolverError
            If the weight is negative or not finite.
        """
        if not np.isfinite(weight) or weight < 0 or samples < 0:
            raise SolverError(
                f"statistics: weight and samples of at least 0 are wanted, not {weight!r} and {samples!r}"
            )
        self.weight, self.samples = float(weight), int(samples)

    # ------------------------------------------------------------------------------ cells
    def velocity(self) -> Array:
        """Return ``<u>``, ``(cells, d)``."""
        return self.mean.read()[:, : self.flow.dimension]

    def pressure(self) -> Array:
        """Return ``<p>``, ``(cells,)``."""
        return self.mean.read()[:, self.flow.dimension]

    def pressure_variance(self) -> Array:
        """Return ``<p'^2>``, ``(cells,)``."""
        return self.moments.read()[:, -1]

    def stress(self) -> Array:
        """Return Reynolds's stresses ``<u_i' u_k'>``, ``(cells, d, d)``."""
        return symmetric(self.moments.read()[:, :-1], self.flow.dimension)

    def rms(self) -> Array:
        """Return ``sqrt <u_i'^2>``, ``(cells, d)``."""
        return np.sqrt(np.maximum(np.einsum("nii->ni", self.stress()), 0.0))

    def scalar(self, name: str) -> ScalarAverage:
        """Return the averages of a scalar.

        Raises
        ------
        SolverError
            If there is no such scalar.
        """
        if name not in self.scalars:
            known = ", ".join(self.scalars) or "none"
            raise SolverError(f"statistics: no scalar {name!r}{did_you_mean(name, self.scalars)} (scalars: {known})")
        found = self.scalars[name].read()
        return ScalarAverage(found[:, 0], found[:, 1], found[:, 2:])

    # ------------------------------------------------------------------------------ profiles
    def profile(self, axis: str, bins: int | None = None) -> Profile:
        """Return averages over the directions beside one.

        Parameters
        ----------
        axis
            ``"x"``, ``"y"`` or ``"z"``: the direction that is left.
        bins
            How many equal intervals; by default each coordinate that cells have is a place of its own.

        Raises
        ------
        SolverError
            If there is no such direction, or no sample yet.
        """
        d, cv = self.flow.dimension, self.flow.volumes
        if axis not in tuple("xyz"[:d]):
            raise SolverError(f"profile: an axis of {', '.join('xyz'[:d])} is wanted, not {axis!r}")
        if not self.samples:
            raise SolverError("profile: there is no sample yet: call sample() after steps")
        if bins is not None and bins < 1:
            raise SolverError(f"profile: bins: a number of at least 1 is wanted, not {bins!r}")
        x, weight = cv.centres[: cv.owned, "xyz".index(axis)], cv.volumes[: cv.owned]
        place, count = self._places(x, bins)
        total = lambda values: self._sum(place, count, weight, values)  # noqa: E731
        volume = total(np.ones((cv.owned, 1)))[:, 0]
        kept = volume > 0
        share = 1.0 / volume[kept][:, None]
        mean, moments = self.mean.read(), self.moments.read()
        rows, columns = np.triu_indices(d)
        products = np.concatenate([mean[:, rows] * mean[:, columns], mean[:, d:] ** 2], axis=1)
        first = total(mean)[kept] * share
        second = total(moments + products)[kept] * share
        second -= np.concatenate([first[:, rows] * first[:, columns], first[:, d:] ** 2], axis=1)
        scalars = {}
        for name, dat in self.scalars.items():
            found = dat.read()
            theta = found[:, :1]
            mixed = np.concatenate([theta, found[:, 1:2] + theta**2, found[:, 2:] + theta * mean[:, :d]], axis=1)
            mixed = total(mixed)[kept] * share
            flux = mixed[:, 2:] - mixed[:, :1] * first[:, :d]
            scalars[name] = ScalarAverage(mixed[:, 0], mixed[:, 1] - mixed[:, 0] ** 2, flux)
        where = total(x[:, None])[kept, 0] * share[:, 0]
        return Profile(where, volume[kept], first[:, :d], symmetric(second[:, :-1], d), first[:, d], second[:, -1],
                       scalars)  # fmt: skip

    def _places(self, x: Array, bins: int | None) -> tuple[npt.NDArray[np.int64], int]:
        """Return the place of each cell, and how many places there are. Collective."""
        comm = self.flow.context.comm
        every = np.unique(np.concatenate(comm.allgather(np.unique(x))))
        low, extent = every[0], every[-1] - every[0]
        if bins is not None:
            place = np.floor((x - low) / (extent or 1.0) * bins).astype(np.int64)
            return np.minimum(place, bins - 1), bins
        starts = every[np.concatenate([[True], np.diff(every) > _SAME * extent])]
        return np.searchsorted(starts, x, side="right") - 1, starts.size

    def _sum(self, place: npt.NDArray[np.int64], count: int, weight: Array, values: Array) -> Array:
        """Return the sums over places of values ``(cells, m)`` times the volumes, of all ranks. Collective."""
        found = [np.bincount(place, weight * column, minlength=count) for column in values.T]
        return self.flow.context.comm.reduce(np.stack(found, axis=1), "sum")
