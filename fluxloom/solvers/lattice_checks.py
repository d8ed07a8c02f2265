"""Checks of what a lattice Boltzmann flow is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.lbm.box import AXES, side_names

__all__ = ["check_count", "check_force", "check_start", "check_viscosity", "joined_axes"]


def check_viscosity(viscosity: float) -> None:
    """Raise `SolverError` unless a viscosity is positive and finite."""
    if not (np.isfinite(viscosity) and viscosity > 0):
        raise SolverError(f"the viscosity must be positive, not {viscosity!r} (lattice units: cells^2 a step)")


def check_count(count: int) -> int:
    """Return a number of steps; raise `SolverError` unless it is whole and not negative."""
    try:
        found = index(count)
    except TypeError:
        raise SolverError(f"the number of steps must be whole, not {count!r}") from None
    if found < 0:
        raise SolverError(f"the number of steps must not be negative, not {count}: a flow cannot go back")
    return found


def check_start(density: npt.ArrayLike, velocity: npt.ArrayLike) -> None:
    """Raise `SolverError` unless densities are positive, and all values finite."""
    rho = np.asarray(density, dtype=np.float64)
    if not (np.all(np.isfinite(rho)) and np.all(rho > 0)):
        raise SolverError("initialise: the density must be positive and finite everywhere (it is one at rest)")
    if not np.all(np.isfinite(np.asarray(velocity, dtype=np.float64))):
        raise SolverError("initialise: a velocity is not finite")


def check_force(force: Sequence[float], dimensions: int) -> tuple[float, ...]:
    """Return a force along each axis; zeros for none.

    Raises
    ------
    SolverError
        If its length or a component does not fit.
    """
    values = tuple(float(x) for x in force) or (0.0,) * dimensions
    if len(values) != dimensions or not np.all(np.isfinite(values)):
        raise SolverError(f"the force {tuple(force)} must have {dimensions} finite components, slowest axis first")
    return values


def joined_axes(dimensions: int, boundaries: Mapping[str, Any]) -> tuple[bool, ...]:
    """Return which axes are periodic, slowest first: those none of whose sides has a condition.

    Raises
    ------
    SolverError
        For a name of no side, or an axis of which one side has a condition and the other has none.
    """
    names = side_names(dimensions)
    for name in boundaries:
        if name not in names:
            known = ", ".join(names)
            raise SolverError(f"{name!r} is no side of the box{did_you_mean(name, names)} (there are: {known})")
    found = []
    for axis in AXES[:dimensions]:
        given = [f"{axis}{end}" in boundaries for end in ("min", "max")]
        if given[0] != given[1]:
            lacking = f"{axis}{'min' if given[1] else 'max'}"
            raise SolverError(f"side {lacking!r} has no condition, but the one across has: give both, or neither")
        found.append(not given[0])
    return tuple(reversed(found))
