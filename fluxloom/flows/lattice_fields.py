"""Fields of a lattice Boltzmann flow in the units of the case, from one look at the populations; pictures of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice_ranks import Pieces
from fluxloom.flows.lattice_units import Units
from fluxloom.run.pictures import draw_image
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = [
    "LatticeFields", "curl", "draw_plane", "fields_of", "look_at", "middle", "slope_of", "speed_of", "velocity_of",
    "vorticity_of",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LatticeFields:
    """Values of the cells, over the shape of the box; on several ranks of this rank's.

    Attributes
    ----------
    velocity
        ``(*shape, d)``, components x first.
    pressure
        Over that of density one, divided by the density; zero where there is no fluid.
    vorticity
        Of a plane flow the component out of it, in space its magnitude.
    fluid
        Which cells are fluid.
    """

    velocity: Array
    pressure: Array
    vorticity: Array
    fluid: npt.NDArray[np.bool_]

    @property
    def speed(self) -> Array:
        """Of the fluid."""
        return speed_of(self.velocity)


def speed_of(velocity: Array) -> Array:
    """Return the magnitude of velocities ``(..., d)``."""
    return np.linalg.norm(velocity, axis=-1)


def look_at(flow: LatticeBoltzmann, units: Units, pieces: Pieces) -> LatticeFields:
    """Return the fields of a flow now; on several ranks of this rank's cells. Collective."""
    return fields_of(flow.velocity(), flow.density(), flow.fluid, units, pieces)


def fields_of(velocity: Array, density: Array, fluid: Mask, units: Units, pieces: Pieces) -> LatticeFields:
    """Return fields from values on the lattice. Collective.

    Parameters
    ----------
    velocity, density
        Of this rank's cells, ``(*cells, d)`` slowest axis first, and ``(*cells,)``.
    fluid
        Which cells of the box are fluid.
    """
    found = velocity_of(velocity, units)
    with np.errstate(all="ignore"):
        pressure = (density - 1.0) / 3.0 * units.speed**2
        return LatticeFields(found, pressure, vorticity_of(found, units.dx, pieces), fluid[pieces.window])


def velocity_of(velocity: npt.NDArray[Any], units: Units) -> Array:
    """Return velocities on the lattice as ones of the case, components x first."""
    return np.asarray(velocity[..., ::-1], dtype=np.float64) * units.speed


def vorticity_of(velocity: Array, dx: float, pieces: Pieces) -> Array:
    """Return the vorticity of this rank's cells, from their velocity. Collective."""
    around = pieces.beyond(velocity)
    d = velocity.ndim - 1

    def slope(component: int, axis: int) -> Array:
        along = d - 1 - axis
        layers = tuple(layer[..., component] for layer in around[along]) if along in around else None
        return slope_of(velocity[..., component], along, dx, pieces.ends(along), layers)

    return curl(slope, d)


def curl(slope: Callable[[int, int], Array], d: int) -> Array:
    """Return the vorticity; ``slope`` returns the derivative of a component along an axis, both counted x first."""
    with np.errstate(all="ignore"):
        if d == 2:
            return slope(1, 0) - slope(0, 1)
        parts = [slope((k + 2) % 3, (k + 1) % 3) - slope((k + 1) % 3, (k + 2) % 3) for k in range(3)]
        return np.sqrt(parts[0] ** 2 + parts[1] ** 2 + parts[2] ** 2)


def slope_of(
    values: Array, along: int, dx: float, ends: tuple[bool, bool], layers: tuple[Array, ...] | None = None
) -> Array:
    """Return the derivative along an axis: central differences of second order, one-sided ones of first order at ends.

    Parameters
    ----------
    ends
        Whether the values end before the first and behind the last along the axis.
    layers
        What lies before and behind; by default the last and the first values, as the axis is joined.
    """
    at = np.moveaxis(values, along, 0)
    low, high = (np.moveaxis(layer, along, 0) for layer in layers) if layers is not None else (at[-1:], at[:1])
    p = np.concatenate([at[:1] if ends[0] else low, at, at[-1:] if ends[1] else high])
    with np.errstate(all="ignore"):
        found = (p[2:] - p[:-2]) / (2.0 * dx)
        if ends[0]:
            found[0] = (p[2] - p[1]) / dx
        if ends[1]:
            found[-1] = (p[-2] - p[-3]) / dx
    return np.moveaxis(found, 0, along)


def middle(values: npt.NDArray[Any], across: str = "z") -> npt.NDArray[Any]:
    """Return the plane in the middle across an axis; of a plane flow the values themselves."""
    if values.ndim == 2:
        return values
    axis = "zyx".index(across)
    return values.take(values.shape[axis] // 2, axis=axis)


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
