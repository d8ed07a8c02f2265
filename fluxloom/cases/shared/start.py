"""What cases of incompressible flow have alike: boundaries, and errors by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fluxloom.cases.files.strategy_tables import member_of
from fluxloom.cases.shared.wall_motion import WallVelocityTable, velocity_values
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry

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


def flow_boundary(table: WallVelocityTable, kind: str, name: str, d: int) -> Boundary:
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
    if kind in ("wall", "inflow"):
        velocity = velocity_values(table, f"boundary.{name}", d)
        return NoSlip(velocity) if kind == "wall" else Inflow(velocity)
    return Outflow(getattr(table, "pressure", 0.0)) if kind == "outflow" else Symmetry()
