"""What flows let monitors measure: values at points, what acts on surfaces, what is averaged in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Layout
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop

__all__ = ["Averaged", "AveragedValue", "CellValues", "Frames", "Loads", "PointValues", "Samples", "Surface"]

Array = npt.NDArray[np.float64]


class Frames(Protocol):
    """A field in a plane, picture after picture.

    Attributes
    ----------
    hidden : (rows, columns)
        What is no fluid, the first row below; on rank 0.
    largest
        The largest value that is worth showing; 0: that is not known.
    signed
        Whether values are on both sides of 0.
    """

    hidden: npt.NDArray[np.bool_]
    largest: float
    signed: bool

    def ask(self, work: Callable[[Array | None], None]) -> None:
        """Let the device keep the field of now, and have work done on it, at once or some steps later. Collective.

        The work takes the field ``(rows, columns)`` on rank 0, None elsewhere.
        """
        ...

    def settle(self) -> None:
        """Wait until all work is done. Collective."""
        ...


class Samples(Protocol):
    """What the device keeps of samples, as `fluxloom.solvers.probe_records.ProbeRecords` does."""

    def values(self, first: int = 0) -> tuple[Array, Array]:
        """Return times ``(n,)`` and values ``(n, points, width)``. Collective."""
        ...

    def reset(self) -> None:
        """Forget all samples."""
        ...


class PointValues(Protocol):
    """Values at points, sampled on the device.

    Attributes
    ----------
    names
        Of the points.
    columns
        Of the values at a point, the names of the fields that they are of.
    records
        The samples.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    records: Any

    def sample(self) -> None:
        """Let the device keep what is at the points now. Collective."""
        ...


@runtime_checkable
class CellValues(PointValues, Protocol):
    """Values at points that are those of the cells that they are in: there all fields have values.

    Attributes
    ----------
    mine, cells
        Numbers of the points of this rank, and the owned cells that they are in.
    """

    mine: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Loads:
    """What a flow does to some patches or bodies at a moment; in two dimensions for a span of 1.

    Attributes
    ----------
    pressure, friction : (d,)
        Parts of the force, N; over the density where the flow has none of its own.
    moment : (3,)
        About the point that was given, N m; in two dimensions only the last component is not 0.
    flow
        Volume that leaves through the patches, m^3/s; of a gas mass, kg/s.
    area
        Of the patches, m^2.
    energy
        That leaves through them, W; NaN where the flow has none.
    means
        Means over the area by name: ``p``, ``total_pressure``, and what else there is, as ``T``.
    total : (d,)
        The force of a flow that does not know its parts, which are NaN then.
    turns
        Whether the moment is found; else it is NaN.
    """

    pressure: Array
    friction: Array
    moment: Array
    flow: float
    area: float
    energy: float = float("nan")
    means: Mapping[str, float] = field(default_factory=dict[str, float])
    total: Array | None = None
    turns: bool = True

    @property
    def force(self) -> Array:
        """Pressure and friction, ``(d,)``."""
        return self.pressure + self.friction if self.total is None else self.total


class Surface(Protocol):
    """Patches or bodies on which a flow acts."""

    @property
    def patches(self) -> Sequence[str]:
        """Their names."""
        ...

    def take(self) -> None:
        """Let the device find the sums of now; it does not wait. Collective."""
        ...

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        ...

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return of each scalar that the flow carries its mean over the area and what leaves per second. Collective."""
        ...

    def faces(self) -> Mapping[str, Array]:
        """Return values of the faces of all ranks, ``(faces,)`` each, on rank 0; elsewhere nothing. Collective.

        ``x``, ``y``, ``z``, ``area``, ``nx`` ... (outward normal), ``p``, and what there is of ``tau_x`` ... (the
        stress of the flow along the wall), ``y_plus``, ``T``, ``heat_flux`` (into the wall, W/m^2), ``conductivity``,
        and of each scalar its value by its name, with ``_flux`` what diffuses into the wall, and ``_diffusivity``;
        where walls move, ``moves``, 1 at the faces of these and else 0.
        Where values are at points, a point with the part of the surface that belongs to it is a face.
        """
        ...


@dataclass(frozen=True)
class AveragedValue:
    """A number an element that can be averaged in time.

    Attributes
    ----------
    name
        Of the field.
    values
        What a loop over the elements reads: a dat, also through a map.
    place
        Of the number among its components.
    scale
        Finds what it is multiplied by now; None: nothing.
    mixed
        Whether its covariances with the velocity are kept.
    unit
        Of the field.
    """

    name: str
    values: Any
    place: int = 0
    scale: Callable[[], float] | None = None
    mixed: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Averaged:
    """What of a flow can be averaged in time, on the device.

    Attributes
    ----------
    over
        The elements.
    values
        Numbers an element.
    read
        Returns the values of a dat of the elements that this rank owns, in local order.
    places, sizes
        Return where they are, ``(n, d)``, and their volumes, ``(n,)``, for profiles.
    velocity
        What a loop over the elements reads, of which the covariances with each other are kept; None: there is none.
    components
        Names of its components.
    first
        Place of the first component in what is read.
    spread
        A dat ``(d,)``: of a velocity that is the mean of several in an element what their squares have beyond that of
        the mean; None: nothing.
    unit
        Of the velocity.
    before
        Loops that fill what is read.
    prepare
        Called before them at each sample: fills what is read by loops that differ from step to step; None: nothing.
    dtype, layout
        Of the means.
    """

    over: Set
    values: Sequence[AveragedValue]
    read: Callable[[Dat], Array]
    places: Callable[[], Array]
    sizes: Callable[[], Array]
    velocity: Any = None
    components: Sequence[str] = ()
    first: int = 0
    spread: Dat | None = None
    unit: str = ""
    before: Sequence[Loop] = field(default=())
    prepare: Callable[[], None] | None = None
    dtype: npt.DTypeLike = "float64"
    layout: Layout | None = None
