"""Bodies of case files of lattice Boltzmann flow: shapes, motions, particles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fluxloom.cases.lattice.body_tables import LatticeBodyTable
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.core.errors import CaseError
from fluxloom.flows.lattice.given.bodies import Body, BodyMotion, Floating, Membrane, Moving
from fluxloom.flows.lattice.given.immersed import Immersion
from fluxloom.flows.lattice.given.particles import Particles
from fluxloom.flows.lattice.given.shapes import Ball, BodyShape, Box, Implicit, OfFile, Rod
from fluxloom.values.expressions import formula

__all__ = ["bodies_of", "immersion_of", "particles_of"]

Array = npt.NDArray[np.float64]


def bodies_of(case: LatticeCase) -> dict[str, Body]:
    """Return the bodies of a case by name.

    Raises
    ------
    CaseError
        For a shape or a motion that is none in so many dimensions.
    """
    d = case.mesh.dimension
    turning = case.turning
    return {name: _body(table, f"body.{name}", d, name in turning) for name, table in case.body.items()}


def _body(table: LatticeBodyTable, key: str, d: int, turns: bool) -> Body:
    motion = _motion(table, key, d)
    return Body(_shape(table, key, d), table.condition, table.velocity, table.spin, motion, table.retract, turns)


def _shape(table: LatticeBodyTable, key: str, d: int) -> BodyShape:
    if table.shape not in ("box", "implicit") and (table.shape == "circle") != (d == 2):
        raise CaseError(f"{key}.shape: {table.shape!r} is none of a flow in {d} dimensions")
    match table.shape:
        case "circle" | "sphere":
            return Ball(table.center, table.diameter)
        case "cylinder":
            assert table.axis
            return Rod(table.center, table.diameter, table.axis, table.length)
        case "box":
            return Box(table.low, table.high)
        case "implicit":
            return Implicit(formula(table.function, f"{key}.function", ("x", "y", "z")[:d]), table.low, table.high)
        case "surface" | "stl":
            return OfFile(table.file, table.scale, table.translate, table.weld)


def _motion(table: LatticeBodyTable, key: str, d: int) -> BodyMotion | None:
    match table.motion:
        case "fixed":
            return None
        case "free":
            return Floating(table.density, table.gravity)
        case "elastic":
            return Membrane(table.stiffness, table.bending)
        case "prescribed":
            return _prescribed(table, key, d)


def _prescribed(table: LatticeBodyTable, key: str, d: int) -> Moving:
    """Return the motion that formulas of the time describe."""
    if d == 2 and table.position_z:
        raise CaseError(f"{key}.position_z: the mesh has 2 dimensions; leave it out")
    keys = [f"position_{axis}" for axis in "xyz"[:d]]
    ways: list[Callable[..., Array]] = [formula(getattr(table, one) or "0", f"{key}.{one}", ("t",)) for one in keys]
    turn = formula(table.angle, f"{key}.angle", ("t",)) if table.angle else None
    return Moving(lambda t: np.stack([way(t) for way in ways], axis=1), turn)


def particles_of(case: LatticeCase) -> Particles | None:
    """Return the particles of a case, if there are any."""
    table = case.particles
    if not table.count:
        return None
    return Particles(
        table.count, table.diameter, table.density, table.gravity, table.seed, table.low, table.high, table.retract
    )


def immersion_of(case: LatticeCase) -> Immersion:
    """Return how immersed bodies of a case are computed."""
    table = case.immersed
    return Immersion(table.delta, table.iterations, table.margin, table.pipeline)
