"""Running means of a flow: means, covariances, and both over directions too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.flow_averages import average_value, average_velocity
from fluxloom.run.fields import Quantity
from fluxloom.run.measures import Averaged

__all__ = ["Profile", "RunningMeans"]

Array = npt.NDArray[np.float64]

_SAME = 1e-7
"""How far apart coordinates of one place may be, as a part of the extent of the mesh."""


@dataclass(frozen=True)
class Profile:
    """Averages in time and over all elements with one coordinate, ``n`` places.

    Attributes
    ----------
    axis
        ``"x"``, ``"y"`` or ``"z"``: the direction that is left.
    coordinate, volume : (n,)
        Where, ascending, and the volume of the elements there.
    columns
        By name, ``(n,)`` each: means under the names of the fields, ``u_rms`` ..., covariances of components ``uv`` ...
        and of the velocity with other fields, ``u_T`` ...; of what differs from the means here: in time and from
        element to element.
    """

    axis: str
    coordinate: Array
    volume: Array
    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]


class RunningMeans:
    """Means and covariances of the samples of a flow so far; a sample is one chain of loops on the device.

    The dats of means and covariances, `weight` and `samples` are the whole state. On several ranks all is collective,
    and values are those of the elements that a rank owns.

    Parameters
    ----------
    averaged
        What is sampled.

    Attributes
    ----------
    weight, samples
        Of all samples, and how many there are.
    """

    remembers = ("weight", "samples")

    def __init__(self, averaged: Averaged) -> None:
        self.averaged = averaged
        self.weight, self.samples = 0.0, 0
        over, d = averaged.over, len(averaged.components)
        self._context = over.context

        def means(name: str, width: int) -> Dat:
            """Return numbers of the elements."""
            return Dat(over, name=name, shape=(width,), dtype=averaged.dtype, layout=averaged.layout)

        def number(value: float, name: str) -> Global:
            """Return a number for all elements."""
            return Global(over.context, value, dtype=averaged.dtype, name=name)

        self._share = number(0.0, "share")
        self._scales = {value.name: number(1.0, "scale") for value in averaged.values if value.scale is not None}
        self._mean, self._moments = (means("mean", d), means("moments", d * (d + 1) // 2)) if d else (None, None)
        self._values: dict[str, Dat] = {}
        loops = list(averaged.before)
        for value in averaged.values:
            found = means(f"{value.name}.moments", 2 + d * value.mixed)
            both = (averaged.velocity, self._mean) if value.mixed and d else (None, None)
            scale = self._scales.get(value.name)
            loops.append(Loop(average_value, over, value.values, scale, *both, self._share, found, place=value.place,
                              d=d, first=averaged.first))  # fmt: skip
            self._values[value.name] = found
        if d:
            loops.append(Loop(average_velocity, over, averaged.velocity, averaged.spread, self._share, self._mean,
                              self._moments, d=d, first=averaged.first))  # fmt: skip
        self._chain = Chain(loops, name="statistics")
        self._known: dict[str, Array] = {}

    # ------------------------------------------------------------------------------ sampling
    def sample(self, weight: float = 1.0) -> None:
        """Add what the flow is now, with a weight.

        Raises
        ------
        SolverError
            If the weight is not above 0.
        """
        if not (np.isfinite(weight) and weight > 0.0):
            raise SolverError(f"averages: a sample of weight {weight!r}: a number above 0 is wanted")
        self.weight += float(weight)
        self.samples += 1
        self._share.value = weight / self.weight
        for value in self.averaged.values:
            if value.scale is not None:
                self._scales[value.name].value = value.scale()
        if self.averaged.prepare is not None:
            self.averaged.prepare()
        self._chain()

    def reset(self) -> None:
        """Forget all samples: the next one starts anew."""
        self.weight, self.samples = 0.0, 0
        for dat in (self._mean, self._moments, *self._values.values()):
            if dat is not None:
                dat.write(np.zeros(dat.shape))

    # ------------------------------------------------------------------------------ elements
    def velocity(self) -> Array:
        """Return the mean velocity, ``(n, d)``."""
        return self.averaged.read(self._known_velocity()[0])

    def stress(self) -> Array:
        """Return Reynolds's stresses ``<u_i' u_k'>``, ``(n, d, d)``."""
        return _symmetric(self.averaged.read(self._known_velocity()[1]), len(self.averaged.components))

    def rms(self) -> Array:
        """Return ``sqrt <u_i'^2>``, ``(n, d)``."""
        return np.sqrt(np.maximum(np.einsum("nii->ni", self.stress()), 0.0))

    def mean(self, name: str) -> Array:
        """Return the mean of a value, ``(n,)``."""
        return self.averaged.read(self._values[name])[:, 0]

    def variance(self, name: str) -> Array:
        """Return ``<q'^2>`` of a value, ``(n,)``."""
        return np.maximum(self.averaged.read(self._values[name])[:, 1], 0.0)

    def flux(self, name: str) -> Array:
        """Return ``<u_i' q'>`` of a value of which that is kept, ``(n, d)``."""
        return self.averaged.read(self._values[name])[:, 2:]

    def _known_velocity(self) -> tuple[Dat, Dat]:
        if self._mean is None or self._moments is None:
            raise SolverError("averages: this flow has no velocity")
        return self._mean, self._moments

    def quantities(self) -> dict[str, Quantity]:
        """Return all of it as fields: means ``u_mean``, ``u_rms``, stresses ``uv``, fluxes ``u_T``."""
        averaged, means, found, rest = self.averaged, {}, {}, {}
        names, square = tuple(averaged.components), f"({averaged.unit})^2" if averaged.unit else ""
        for k, name in enumerate(names):
            means[f"{name}_mean"] = Quantity(
                averaged.unit, f"mean of {name}", lambda k=k: self.velocity()[:, k].copy()
            )  # fmt: skip
            found[f"{name}_rms"] = Quantity(averaged.unit, f"root mean square of {name}'", lambda k=k: self.rms()[:, k])
        for i, k in _pairs(len(names)):
            rest[names[i] + names[k]] = Quantity(
                square, f"mean of {names[i]}' {names[k]}'", lambda i=i, k=k: self.stress()[:, i, k].copy()
            )  # fmt: skip
        for value in averaged.values:
            name, unit = value.name, value.unit
            means[f"{name}_mean"] = Quantity(unit, f"mean of {name}", lambda name=name: self.mean(name).copy())
            found[f"{name}_rms"] = Quantity(
                unit, f"root mean square of {name}'", lambda name=name: np.sqrt(self.variance(name))
            )  # fmt: skip
            for k, component in enumerate(names if value.mixed else ()):
                rest[f"{component}_{name}"] = Quantity(
                    "", f"mean of {component}' {name}'", lambda name=name, k=k: self.flux(name)[:, k].copy()
                )  # fmt: skip
        return means | found | rest

    # ------------------------------------------------------------------------------ profiles
    def profile(self, axis: str, bins: int = 0) -> Profile:
        """Return averages over the directions beside one.

        Parameters
        ----------
        axis
            ``"x"``, ``"y"`` or ``"z"``: the direction that is left.
        bins
            How many equal intervals; 0: each coordinate that elements have is a place of its own.

        Raises
        ------
        SolverError
            If there is no such direction, or no sample yet.
        """
        places, sizes = self.averaged.places(), self.averaged.sizes()
        self.check_axis(axis, bins)
        if not self.samples:
            raise SolverError("profile: there is no sample yet: call sample() after steps")
        x = places[:, "xyz".index(axis)]
        place, count = self._places(x, bins)
        total = lambda values: self._sum(place, count, sizes, values)  # noqa: E731
        volume = total(np.ones((len(x), 1)))[:, 0]
        kept = volume > 0
        share = 1.0 / volume[kept][:, None]
        averaged, columns = self.averaged, {}
        names, velocity, first = tuple(averaged.components), np.zeros((len(x), 0)), np.zeros((len(volume[kept]), 0))
        if names:
            velocity = self.velocity()
            products = np.einsum("ni,nk->nik", velocity, velocity) + self.stress()
            first = total(velocity)[kept] * share
            d = len(names)
            second = (total(products.reshape(-1, d * d))[kept] * share).reshape(-1, d, d)
            second -= np.einsum("ni,nk->nik", first, first)
            columns |= {name: first[:, k] for k, name in enumerate(names)}
            columns |= {f"{name}_rms": np.sqrt(np.maximum(second[:, k, k], 0.0)) for k, name in enumerate(names)}
            columns |= {names[i] + names[k]: second[:, i, k] for i, k in _pairs(d)}
        for value in averaged.values:
            found = averaged.read(self._values[value.name])
            q, wide = found[:, :1], found.shape[1] - 2
            mixed = np.concatenate([q, found[:, 1:2] + q**2, found[:, 2:] + q * velocity[:, :wide]], axis=1)
            mixed = total(mixed)[kept] * share
            flux = mixed[:, 2:] - mixed[:, :1] * first[:, :wide]
            columns[value.name] = mixed[:, 0]
            columns[f"{value.name}_rms"] = np.sqrt(np.maximum(mixed[:, 1] - mixed[:, 0] ** 2, 0.0))
            columns |= {f"{names[k]}_{value.name}": flux[:, k] for k in range(flux.shape[1])}
        where = total(x[:, None])[kept, 0] * share[:, 0]
        return Profile(axis, where, volume[kept], columns)

    def check_axis(self, axis: str, bins: int) -> None:
        """Raise `SolverError` unless a profile along an axis, with so many intervals, is one."""
        d = self.averaged.places().shape[1]
        if axis not in tuple("xyz"[:d]):
            raise SolverError(f"profile: an axis of {', '.join('xyz'[:d])} is wanted, not {axis!r}")
        if bins < 0:
            raise SolverError(f"profile: bins: a number of at least 1 is wanted, or 0, not {bins!r}")

    def _places(self, x: Array, bins: int) -> tuple[npt.NDArray[np.int64], int]:
        """Return the place of each element, and how many places there are. Collective."""
        every = np.unique(np.concatenate(self._context.comm.allgather(np.unique(x))))
        low, extent = every[0], every[-1] - every[0]
        if bins:
            place = np.floor((x - low) / (extent or 1.0) * bins).astype(np.int64)
            return np.minimum(place, bins - 1), bins
        starts = every[np.concatenate([[True], np.diff(every) > _SAME * extent])]
        return np.searchsorted(starts, x, side="right") - 1, starts.size

    def _sum(self, place: npt.NDArray[np.int64], count: int, weight: Array, values: Array) -> Array:
        """Return the sums over places of values ``(n, m)`` times the volumes, of all ranks. Collective."""
        found = [np.bincount(place, weight * column, minlength=count) for column in values.T]
        return self._context.comm.reduce(np.stack(found, axis=1), "sum")


def _symmetric(values: Array, d: int) -> Array:
    """Return tensors ``(n, d, d)`` whose upper triangles lie row by row in ``values``."""
    found = np.empty((len(values), d, d))
    for place, (i, k) in enumerate(zip(*np.triu_indices(d), strict=True)):
        found[:, i, k] = found[:, k, i] = values[:, place]
    return found


def _pairs(d: int) -> list[tuple[int, int]]:
    """Return the pairs of different components."""
    return [(i, k) for i in range(d) for k in range(i + 1, d)]
