"""Fields of a lattice Boltzmann flow in the units of the case, from one look at the populations; pictures of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_pictures import new_figure
from fluxloom.app.cases.lattice_units import Units
from fluxloom.app.files import atomic
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["Fields", "draw_plane", "look_at", "middle", "speed_of", "vorticity_of"]

Array = npt.NDArray[np.float64]

_GREY = "#3a3f47"


@dataclass(frozen=True)
class Fields:
    """Values of the cells, over the shape of the box.

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
        return np.linalg.norm(self.velocity, axis=-1)


def look_at(flow: LatticeBoltzmann, units: Units) -> Fields:
    """Return the fields of a flow now."""
    velocity = _velocity(flow, units)
    with np.errstate(all="ignore"):
        pressure = (flow.density() - 1.0) / 3.0 * units.speed**2
        return Fields(velocity, pressure, _vorticity(velocity, units.dx, flow.box.periodic), flow.fluid)


def speed_of(flow: LatticeBoltzmann, units: Units) -> Array:
    """Return the speed alone, from one look."""
    return np.linalg.norm(_velocity(flow, units), axis=-1)


def vorticity_of(flow: LatticeBoltzmann, units: Units) -> Array:
    """Return the vorticity alone, from one look."""
    with np.errstate(all="ignore"):
        return _vorticity(_velocity(flow, units), units.dx, flow.box.periodic)


def _velocity(flow: LatticeBoltzmann, units: Units) -> Array:
    return np.asarray(flow.velocity()[..., ::-1], dtype=np.float64) * units.speed


def _vorticity(velocity: Array, dx: float, periodic: tuple[bool, ...]) -> Array:
    """Return the vorticity by central differences of second order; one-sided ones at sides that are not joined."""

    def slope(component: int, axis: int) -> Array:
        values, along = velocity[..., component], velocity.ndim - 2 - axis
        if periodic[along]:
            return (np.roll(values, -1, along) - np.roll(values, 1, along)) / (2.0 * dx)
        if values.shape[along] < 2:
            return np.zeros_like(values)
        return np.gradient(values, dx, axis=along)

    if velocity.shape[-1] == 2:
        return slope(1, 0) - slope(0, 1)
    parts = [slope((k + 2) % 3, (k + 1) % 3) - slope((k + 1) % 3, (k + 2) % 3) for k in range(3)]
    return np.sqrt(parts[0] ** 2 + parts[1] ** 2 + parts[2] ** 2)


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
    figure, canvas = new_figure(7.6, float(np.clip(6.2 * rows / columns + 0.9, 2.0, 9.0)))
    axes = figure.add_subplot()
    axes.set_facecolor(_GREY)
    shown = np.where(fluid & np.isfinite(values), values, np.nan)
    known = np.abs(shown[np.isfinite(shown)])
    most = float(np.percentile(known, 99.0)) if known.size else 1.0
    limits = {"vmin": -(most or 1.0), "vmax": most or 1.0, "cmap": "RdBu_r"} if signed else {"cmap": "viridis"}
    drawn = axes.imshow(shown, origin="lower", extent=extent, interpolation="nearest", **limits)
    figure.colorbar(drawn, ax=axes, pad=0.02, aspect=30, shrink=0.9).set_label(label)
    axes.set(xlabel=axes_names[0], ylabel=axes_names[1])
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=11)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))
