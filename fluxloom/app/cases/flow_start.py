"""What cases of incompressible flow do alike before the first step: boundaries, what is refused, errors by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_volumes import check_length
from fluxloom.app.cases.incompressible_tables import GivenVelocityTable, KrylovTable
from fluxloom.app.cases.wall_motion import velocity_values
from fluxloom.app.strategy_tables import member_of
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.fv.incompressible_boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.status import Status

__all__ = ["check_start", "check_step", "explained", "flow_boundary", "passes", "slides_only"]

Array = npt.NDArray[np.float64]

_ALONG = 1e-3
"""Part of ``|u| A`` that may pass a wall: files with coordinates in single precision have normals of few digits."""


@contextmanager
def explained(key: str, other: str = "") -> Iterator[None]:
    """Make errors ones of a key of the case file: those of the mesh of the first, those of the solver of the second."""
    try:
        yield
    except MeshError as error:
        raise CaseError(f"{key}: {error}") from None
    except SolverError as error:
        raise CaseError(f"{other or key}: {error}") from None


def flow_boundary(table: GivenVelocityTable, kind: str, name: str, d: int) -> Boundary:
    """Return what happens at a patch.

    Parameters
    ----------
    table
        ``[boundary.NAME]``.
    kind
        Its type: wall, inflow, outflow or symmetry.
    name
        Of the patch.
    d
        Dimensions of the mesh.

    Raises
    ------
    CaseError
        If the velocity does not fit.
    """
    if (own := member_of(table)) is not None:
        return own
    check_length(f"boundary.{name}.velocity", len(table.velocity), d)
    if kind in ("wall", "inflow"):
        velocity = tuple(table.velocity)
        if table.motion():
            velocity = velocity_values(table, f"boundary.{name}", d)
        return NoSlip(velocity) if kind == "wall" else Inflow(velocity)
    return Outflow(getattr(table, "pressure", 0.0)) if kind == "outflow" else Symmetry()


def passes(through: Array, size: Array) -> bool:
    """Return whether more passes faces, ``u . n A``, than rounding makes of ``|u| A``, ``size``."""
    return bool((np.abs(through) > _ALONG * size).any())


def slides_only(name: str, velocity: object) -> CaseError:
    """Return the error of a wall that moves along its normal."""
    return CaseError(
        f"boundary.{name}.velocity: a wall slides along itself, and {velocity} has a part along "
        'its normal; type = "inflow" lets fluid through'
    )


def check_start(status: Status, table: KrylovTable) -> None:
    """Raise `CaseError` unless the initial velocity has no divergence."""
    if not status.converged:
        raise CaseError(
            f"pressure.iterations: {table.iterations} do not suffice to make the initial velocity free of "
            "divergence; raise them or choose another pressure.preconditioner"
        )


def check_step(bounded: bool) -> None:
    """Raise `CaseError` where the largest stable step is wanted, and there is none."""
    if not bounded:
        raise CaseError("time.dt: a fluid at rest without viscosity has no largest stable step: give dt")
