"""Fields of a lattice Boltzmann flow in the units of the case, from one look at the populations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.lattice.ranks import Pieces
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = [
    "LatticeFields", "curl", "fields_of", "gradient_of", "look_at", "middle", "pressure_of", "slope_of", "speed_of",
    "velocity_of", "vorticity_of",
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
        pressure = pressure_of(density, units)
        return LatticeFields(found, pressure, vorticity_of(found, units.dx, pieces), fluid[pieces.window])


def pressure_of(density: Array, units: Units) -> Array:
    """Return the pressure of lattice densities, over that of density one and by the density: ``(rho - 1) / 3 U^2``.

    ``U`` is a cell a step.
    """
    return (density - 1.0) / 3.0 * units.speed**2


def velocity_of(velocity: npt.NDArray[Any], units: Units) -> Array:
    """Return velocities on the lattice as ones of the case, ``U u``, components x first; ``U`` is a cell a step."""
    return np.asarray(velocity[..., ::-1], dtype=np.float64) * units.speed


def vorticity_of(velocity: Array, dx: float, pieces: Pieces) -> Array:
    """Return the vorticity of this rank's cells, from their velocity. Collective."""
    return curl(_slopes(velocity, dx, pieces), velocity.ndim - 1)


def gradient_of(velocity: Array, dx: float, pieces: Pieces) -> Array:
    """Return ``du_i / dx_j`` of this rank's cells from their velocity, ``(n, d, d)``. Collective."""
    d, slope = velocity.ndim - 1, _slopes(velocity, dx, pieces)
    return np.stack([slope(i, j).ravel() for i in range(d) for j in range(d)], axis=1).reshape(-1, d, d)


def _slopes(velocity: Array, dx: float, pieces: Pieces) -> Callable[[int, int], Array]:
    """Return what finds the derivative of a component along an axis, both counted x first. Collective."""
    around, d = pieces.beyond(velocity), velocity.ndim - 1

    def slope(component: int, axis: int) -> Array:
        """Return ``d u_component / d x_axis`` in the cells, 1/s."""
        along = d - 1 - axis
        layers = tuple(layer[..., component] for layer in around[along]) if along in around else None
        return slope_of(velocity[..., component], along, dx, pieces.beside(along), layers)

    return slope


def curl(slope: Callable[[int, int], Array], d: int) -> Array:
    """Return the vorticity, ``|rot u|``, in the plane ``dv/dx - du/dy``.

    ``slope`` returns the derivative of a component along an axis, both counted x first.
    """
    with np.errstate(all="ignore"):
        if d == 2:
            return slope(1, 0) - slope(0, 1)
        parts = [slope((k + 2) % 3, (k + 1) % 3) - slope((k + 1) % 3, (k + 2) % 3) for k in range(3)]
        return np.sqrt(parts[0] ** 2 + parts[1] ** 2 + parts[2] ** 2)


def slope_of(
    values: Array, along: int, dx: float, beside: tuple[Mask, Mask], layers: tuple[Array, ...] | None = None
) -> Array:
    """Return the derivative along an axis, ``(q_{i+1} - q_{i-1}) / (2 dx)``, one-sided beside one fluid neighbour.

    Both are exact for linear fields. Without any neighbour, and where there is no fluid, it is zero.

    Parameters
    ----------
    beside
        Of `fluid_beside`.
    layers
        What lies before and behind; by default the last and the first values, as the axis is joined.
    """
    at, (before, behind) = np.moveaxis(values, along, 0), (np.moveaxis(one, along, 0) for one in beside)
    low, high = (np.moveaxis(layer, along, 0) for layer in layers) if layers is not None else (at[-1:], at[:1])
    p = np.concatenate([low, at, high])
    with np.errstate(all="ignore"):
        found: Array = (p[2:] - p[:-2]) / (2.0 * dx)
        for here, upper, lower in ((behind & ~before, p[2:], at), (before & ~behind, at, p[:-2])):
            found[here] = (upper[here] - lower[here]) / dx
    found[~(before | behind)] = 0.0
    return np.moveaxis(found, 0, along)


def middle(values: npt.NDArray[Any], across: str = "z") -> npt.NDArray[Any]:
    """Return the plane in the middle across an axis; of a plane flow the values themselves."""
    if values.ndim == 2:
        return values
    axis = "zyx".index(across)
    return values.take(values.shape[axis] // 2, axis=axis)
