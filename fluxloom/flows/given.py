"""What flows are given: whether it fits the mesh, and velocities at the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.fv.given import Given, given_values, parts_of
from fluxloom.values.value import VARIABLES, Formula, has_values

__all__ = ["check_value", "start_velocity"]

Array = npt.NDArray[np.float64]

_COMPONENTS = ("_x", "_y", "_z")


def check_value(what: str, given: Any, places: Array, components: int = 0, least: float = -np.inf) -> None:
    """Raise `SolverError` where a value does not fit the mesh, or is not finite or too small, at the start.

    Numbers, and functions of the places alone, are looked at where they are taken.

    Parameters
    ----------
    what
        Is given; begins messages. One that ends with ``velocity`` gets the component as ``_x``.
    given, components
        As `fluxloom.fv.given.parts_of` takes them.
    places : (n, d)
        Where it is given.
    least
        The least that it may be.
    """
    if not has_values(given):
        return
    d, parts = places.shape[1], parts_of(given, components, what)
    for part, name in zip(parts, _COMPONENTS if what.endswith("velocity") else ("",) * len(parts), strict=False):
        about = f"{what}{name}"
        for variable in VARIABLES[d:-1]:
            if isinstance(part, Formula) and variable in part.expression.names:
                raise SolverError(f"{about}: {part}: unknown name {variable!r}: the mesh has {d} dimensions")
        try:
            found = part.at(places)
        except (SolverError, CaseError) as error:
            raise SolverError(f"{about}: {error}") from None
        for k in np.flatnonzero(found < least)[:1].tolist():
            where = part.where(places[k], 0.0)
            raise SolverError(f"{about}: {part} is {found[k]:g} {where}; at least {least:g} is wanted")


def start_velocity(given: Given, places: Array, comm: Comm) -> Array:
    """Return a velocity at the start, a vector or a function of the places ``(n, d)``; empty: at rest. Collective.

    Raises
    ------
    SolverError
        If there are not ``d`` finite numbers for each place; on all ranks.
    """
    d = places.shape[1]
    velocity: Any = given if callable(given) or np.size(given) else (0.0,) * d  # pyright: ignore[reportArgumentType]
    return raise_on_all_ranks(comm, lambda: given_values("start", velocity, places, d))
