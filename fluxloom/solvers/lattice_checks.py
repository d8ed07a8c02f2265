"""Checks of what a lattice Boltzmann flow is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.lbm.box import AXES, side_names

__all__ = ["check_force", "check_viscosity", "joined_axes"]


def check_viscosity(viscosity: float) -> None:
    """Raise `SolverError` unless a viscosity is positive and finite."""
    if not (np.isfinite(viscosity) and viscosity > 0):
        raise SolverError(f"the viscosity must be positive, not {viscosity!r} (lattice units: cells^2 a step)")


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
