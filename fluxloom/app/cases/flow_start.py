"""What cases of incompressible flow have alike: boundaries, and errors by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fluxloom.app.cases.flow_mesh import check_length
from fluxloom.app.cases.incompressible_tables import GivenVelocityTable
from fluxloom.app.cases.wall_motion import velocity_values
from fluxloom.app.strategy_tables import member_of
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.fv.incompressible_boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry

__all__ = ["explained", "flow_boundary"]

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
