"""Pictures of a lattice Boltzmann flow while it runs: a field in a plane, from no more than is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice_fields import curl, middle, slope_of, speed_of, velocity_of, vorticity_of
from fluxloom.flows.lattice_ranks import Pieces, places_of
from fluxloom.flows.lattice_snapshots import Beside, Layers, Snapshot, Taken
from fluxloom.flows.lattice_units import Units
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LatticeFrames", "LayerPicture", "Picture", "PlanePicture"]

Array = npt.NDArray[np.float64]

_COLUMNS = 960
"""Columns of cells that ranks send for a picture; of a wider box only each so-manieth cell."""


class Picture(Protocol):
    """A field in a plane, on rank 0."""

    @property
    def taken(self) -> Taken:
        """What it is made of."""
        ...

    @property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """What is no fluid, in the shape of `values`."""
        ...

    def values(self) -> Array | None:
        """Return the field at the step at which `taken` was taken, the first row below; None but on rank 0."""
        ...


class PlanePicture:
    """Of a flow in two dimensions; `values` is collective.

    Parameters
    ----------
    flow, units, pieces
        What is looked at, in which units, and the cells of each rank.
    field
        ``"speed"`` or ``"vorticity"``.
    taken
        The flow at some step.
    """

    def __init__(
        self, flow: LatticeBoltzmann, units: Units, pieces: Pieces, field: str, taken: Snapshot
    ) -> None:
        self._units, self._pieces, self._turns, self.taken = units, pieces, field == "vorticity", taken
        shape = flow.box.shape
        self._places = places_of(shape, 1 if pieces.part is None else -(-shape[1] // _COLUMNS))
        self.hidden = ~flow.fluid[np.ix_(*self._places)]

    def values(self) -> Array | None:
        """Return the field of the cells that are seen, on rank 0."""
        velocity = velocity_of(self.taken.velocity(), self._units)
        found = vorticity_of(velocity, self._units.dx, self._pieces) if self._turns else speed_of(velocity)
        return self._pieces.whole(found, self._places)


class LayerPicture:
    """Of a flow in three dimensions, in the middle across z: only that layer and those beside it leave the device.

    Parameters
    ----------
    flow, units
        What is looked at, and in which units.
    field
        ``"speed"`` or ``"vorticity"``.
    """

    def __init__(self, flow: LatticeBoltzmann, units: Units, field: str) -> None:
        self._flow, self._units, self._turns = flow, units, field == "vorticity"
        n, joined = flow.box.shape[0], flow.box.periodic[0]
        at = n // 2
        beside = [(k % n if joined else k) for k in (at - 1, at + 1)] if self._turns else []
        self._ends = (not joined and at == 0, not joined and at == n - 1)
        low, high = ([k] if beside and not end else [] for k, end in zip(beside or (0, 0), self._ends, strict=True))
        self._at = len(low)
        self.taken = Layers(flow, 0, [*low, at, *high])
        self.hidden = ~middle(flow.fluid)

    def values(self) -> Array | None:
        """Return the field in the layer, on rank 0."""
        found = self.taken.velocity()
        if found is None:
            return None
        velocity = velocity_of(found, self._units)
        layer = velocity[self._at]
        if not self._turns:
            return speed_of(layer)

        def slope(component: int, axis: int) -> Array:
            along, values = 2 - axis, layer[None, ..., component]
            if along:
                joined = self._flow.box.periodic[along]
                return slope_of(values, along, self._units.dx, (not joined, not joined))[0]
            sides: tuple[Any, ...] = (velocity[:1, ..., component], velocity[-1:, ..., component])
            return slope_of(values, 0, self._units.dx, self._ends, sides)[0]

        return curl(slope, 3)


class LatticeFrames:
    """A field picture after picture (`fluxloom.run.measures.Frames`), drawn while the next steps run.

    On several ranks only what is seen comes together on rank 0: of wide boxes not every cell.

    Parameters
    ----------
    picture
        The field.
    beside
        Does the work on what was taken.
    largest, signed
        As of `fluxloom.run.measures.Frames`.
    """

    def __init__(self, picture: Picture, beside: Beside, largest: float, *, signed: bool) -> None:
        self._picture, self._beside, self.largest, self.signed = picture, beside, largest, signed
        self.hidden = picture.hidden

    def ask(self, work: Callable[[Array | None], None]) -> None:
        """Let the device keep the field of now, and have work done on it. Collective."""
        self._beside.ask(self._picture.taken, lambda: work(self._picture.values()))

    def settle(self) -> None:
        """Wait until all work is done. Collective."""
        self._beside.settle()
