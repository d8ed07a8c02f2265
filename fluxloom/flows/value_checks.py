"""Whether values in space and time that a flow is given fit its mesh at the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.fv.given import parts_of
from fluxloom.values.value import VARIABLES, Formula, has_values

__all__ = ["check_value"]

Array = npt.NDArray[np.float64]

_VELOCITY = ("_x", "_y", "_z")


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
    for part, name in zip(parts, _VELOCITY if what.endswith("velocity") else ("",) * len(parts), strict=False):
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
