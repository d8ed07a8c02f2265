"""Pictures of a lattice Boltzmann flow: films while it runs, from no more than is seen of it, and its last fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.flows.flow_plan import COMPONENTS
from fluxloom.flows.lattice.fields import (
    LatticeFields,
    curl,
    middle,
    pressure_of,
    slope_of,
    speed_of,
    velocity_of,
    vorticity_of,
)
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.lattice.ranks import Pieces, fluid_beside, places_of
from fluxloom.flows.lattice.snapshots import BackgroundWriter, HostCopy, Layers, Snapshot
from fluxloom.run.pictures import draw_image
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["FILMED", "LatticeFrames", "LayerPicture", "Picture", "PlanePicture", "draw_fields", "draw_plane"]

Array = npt.NDArray[np.float64]

FILMED = ("speed", "vorticity", "p", *COMPONENTS)
"""Fields that there are pictures of."""

_COLUMNS = 960
"""Columns of cells that ranks send for a picture; of a wider box only each so-manieth cell."""


class Picture(Protocol):
    """A field in a plane, on rank 0."""

    @property
    def taken(self) -> HostCopy:
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
        One of `FILMED`.
    taken
        The flow at some step.
    """

    def __init__(
        self, flow: LatticeBoltzmann, units: Units, pieces: Pieces, field: str, taken: Snapshot
    ) -> None:
        self._units, self._pieces, self._field, self.taken = units, pieces, field, taken
        shape = flow.box.shape
        self._places = places_of(shape, 1 if pieces.part is None else -(-shape[1] // _COLUMNS))
        self.hidden = ~flow.fluid[np.ix_(*self._places)]

    def values(self) -> Array | None:
        """Return the field of the cells that are seen, on rank 0."""
        taken, units = self.taken, self._units
        if self._field == "vorticity":
            found = vorticity_of(velocity_of(taken.velocity(), units), units.dx, self._pieces)
        else:
            found = _seen(self._field, taken.density(), taken.velocity(), units)
        return self._pieces.whole(found, self._places)


class LayerPicture:
    """Of a flow in three dimensions, in the middle across z: only that layer and those beside it leave the device.

    Parameters
    ----------
    flow, units
        What is looked at, and in which units.
    field
        One of `FILMED`.
    """

    def __init__(self, flow: LatticeBoltzmann, units: Units, field: str) -> None:
        self._units, self._field = units, field
        n, fluid, joined = flow.box.shape[0], flow.fluid, flow.box.periodic
        layers = [(n // 2 + k) % n for k in (-1, 0, 1)] if field == "vorticity" else [n // 2]
        self.taken, self._at = Layers(flow, 0, layers), len(layers) // 2
        self.hidden = ~middle(fluid)
        self._beside = [[middle(one)[None] for one in fluid_beside(fluid, k, joined=joined[k])] for k in range(3)]

    def values(self) -> Array | None:
        """Return the field in the layer, on rank 0."""
        found, units = self.taken.values(), self._units
        if found is None:
            return None
        if self._field != "vorticity":
            density, velocity = (values[self._at] for values in found)
            return _seen(self._field, density, velocity, units)
        velocity = velocity_of(found[1], units)

        def slope(component: int, axis: int) -> Array:
            """Return ``d u_component / d x_axis`` in the plane, 1/s."""
            along, (low, here, high) = 2 - axis, velocity[:, None, ..., component]
            before, behind = self._beside[along]
            return slope_of(here, along, units.dx, (before, behind), None if along else (low, high))[0]

        return curl(slope, 3)


def _seen(field: str, density: Array, velocity: npt.NDArray[Any], units: Units) -> Array:
    """Return speed, pressure or a component of the velocity, of what is on the lattice."""
    if field == "p":
        return pressure_of(density, units)
    found = velocity_of(velocity, units)
    return speed_of(found) if field == "speed" else found[..., COMPONENTS.index(field)]


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

    def __init__(self, picture: Picture, beside: BackgroundWriter, largest: float, *, signed: bool) -> None:
        self._picture, self._beside, self.largest, self.signed = picture, beside, largest, signed
        self.hidden = picture.hidden

    def ask(self, work: Callable[[Array | None], None]) -> None:
        """Let the device keep the field of now, and have work done on it. Collective."""
        self._beside.ask(self._picture.taken, lambda: work(self._picture.values()))

    def settle(self) -> None:
        """Wait until all work is done. Collective."""
        self._beside.settle()


def draw_fields(
    folder: ResultFolder, flow: LatticeBoltzmann, units: Units, pieces: Pieces, found: LatticeFields, text: str
) -> None:
    """Draw speed and vorticity, of a volume in its middle planes. Collective.

    Parameters
    ----------
    text
        Behind the name of the field in titles.
    """
    flat = units.dimension == 2
    for field, values in (("speed", found.speed), ("vorticity", found.vorticity)):
        for across, axes in (("z", ("x", "y")),) if flat else (("z", ("x", "y")), ("y", ("x", "z"))):
            name = f"{field}.png" if flat else f"{field}_{across}.png"
            places = None if flat else places_of(flow.box.shape, across="zyx".index(across))
            shown, fluid = pieces.whole(values, places), middle(flow.fluid, across)
            if shown is not None:
                plane, title = shown.reshape(fluid.shape), f"{field.capitalize()}: {text}"
                with folder.attempt(name):
                    signed = flat and field == "vorticity"
                    draw_plane(folder / name, plane, fluid, units, title, field, axes, signed=signed)


def draw_plane(
    path: Path, values: Array, fluid: npt.NDArray[np.bool_], units: Units, title: str, label: str,
    axes_names: tuple[str, str] = ("x", "y"), signed: bool = False,
) -> None:  # fmt: skip
    """Draw a field in a plane as a PNG file; what is no fluid is grey.

    Parameters
    ----------
    path
        The file.
    values, fluid
        ``(rows, columns)``, the first row below.
    title, label
        Of the picture, and of the colour bar.
    axes_names
        Of the columns and the rows.
    signed
        Whether the colours are centred at zero, up to the 99th percentile of the magnitude.
    """
    ends = [units.lower["xyz".index(name)] for name in axes_names]
    rows, columns = values.shape
    extent = (ends[0], ends[0] + columns * units.dx, ends[1], ends[1] + rows * units.dx)
    shown = np.where(fluid & np.isfinite(values), values, np.nan)
    known = np.abs(shown[np.isfinite(shown)])
    most = (float(np.percentile(known, 99.0)) if known.size else 1.0) or 1.0
    limits = {"vmin": -most, "vmax": most, "cmap": "RdBu_r"} if signed else {}
    draw_image(path, shown, extent, axes_names, title, label, **limits)
