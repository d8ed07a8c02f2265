"""What an incompressible flow says of itself, and what it asks of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.chain import Chain
from fluxloom.linalg.status import Status

__all__ = [
    "FlowState", "PressureSolver", "SolvedDirectly", "balanced", "check_step", "finite_vector", "surplus",
]  # fmt: skip

Array = npt.NDArray[np.float64]

_BALANCED = 1e-6
"""Part of ``sum |u| A`` of all given velocities that may be missing in the balance.

Files with coordinates in single precision have normals of few digits.
"""


@dataclass(frozen=True)
class FlowState:
    """What the flow does at a moment.

    Attributes
    ----------
    time, steps
        Since the start.
    dt
        Length of the last step.
    kinetic_energy
        ``sum Omega u . u / 2``.
    momentum : (d,)
        ``sum Omega u``.
    imbalance
        Largest sum of what leaves a cell, ``|sum A u_s|``.
    """

    time: float
    steps: int
    dt: float
    kinetic_energy: float
    momentum: Array
    imbalance: float


class PressureSolver(Protocol):
    """What solves ``A phi = b``, as a `fluxloom.linalg.krylov.method.Krylov` method does.

    Attributes
    ----------
    check_next
        Whether the next `solve` ends with the residual of the solution itself.
    """

    check_next: bool

    def solve(self) -> Status:
        """Find ``phi``, beginning with the values that it has; collective."""
        ...

    def verify(self) -> Status:
        """Return what ``phi`` is by the residual of itself; collective."""
        ...

    @property
    def chains(self) -> Sequence[Chain]:
        """What a solve runs, for reports."""
        ...


class SolvedDirectly:
    """A flow whose steps solve nothing by iterations: there is no solve to check."""

    def check_next(self) -> None:
        """Nothing to check."""

    def verify(self) -> Status | None:
        """Return None: there was no iteration."""
        return None


def check_step(dt: float) -> None:
    """Raise `SolverError` unless ``dt`` is a step that can be made."""
    if not isinstance(dt, Real) or not 0.0 < dt < np.inf:
        raise SolverError(f"dt: a positive number is wanted, not {dt!r}")


def surplus(comm: Comm, net: float, scale: float, outflow: bool) -> float:
    """Return what given velocities let out more than in, m^3/s; 0 if they balance or an outflow takes it. Collective.

    Parameters
    ----------
    comm
        Of the ranks.
    net, scale
        ``integral u . n dA`` of what this rank has, and ``integral |u| dA``.
    outflow
        Whether this rank has points of a patch where the flow is free.
    """
    net, scale, outflows = comm.reduce(np.array([net, scale, outflow]), "sum").tolist()
    return net if not outflows and not balanced(net, scale) else 0.0


def balanced(net: float, scale: float) -> bool:
    """Return whether given velocities let as much in as out, ``|int u . n dA| <= BALANCED int |u| dA``."""
    return abs(net) <= _BALANCED * scale


def finite_vector(what: str, value: Any, d: int) -> Array:
    """Return a vector of ``d`` components; an empty one is zero."""
    try:
        found = np.asarray(value if len(value) else np.zeros(d), dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (d,) or not np.isfinite(found).all():
        raise SolverError(f"{what}: {d} finite numbers are wanted, not {value!r}")
    return found
