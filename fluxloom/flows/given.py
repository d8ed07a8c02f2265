"""What flows are given by a script: whether it is of the kind that is wanted, and velocities at the start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.fv.given import given_values
from fluxloom.mesh.rows import together

__all__ = ["chosen", "start_velocity"]

Array = npt.NDArray[np.float64]
V = TypeVar("V")


def chosen(what: str, value: V | None, kind: type[V]) -> V:
    """Return a choice of a user, by default that of its kind.

    Raises
    ------
    SolverError
        If it is of another kind.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise SolverError(f"{what}: {kind.__name__}(...) is wanted, not {value!r}")
    return value


def start_velocity(
    given: Sequence[float] | Callable[[Array], npt.ArrayLike], places: Array, comm: Comm
) -> Array:  # fmt: skip
    """Return a velocity at the start, a vector or a function of the places ``(n, d)``; empty: at rest. Collective.

    Raises
    ------
    SolverError
        If there are not ``d`` finite numbers for each place; on all ranks.
    """
    d = places.shape[1]
    velocity = given if callable(given) or len(given) else (0.0,) * d
    return together(comm, lambda: given_values("start", velocity, places, d))
