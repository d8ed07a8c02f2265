"""The case of lattice Boltzmann flow: how its tables become a solver."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.expressions import formula
from fluxloom.app.cases.flow_start import explained
from fluxloom.app.cases.flow_volumes import check_length
from fluxloom.app.cases.lattice_advice import advices
from fluxloom.app.cases.lattice_bodies import bodies_of, immersed_of
from fluxloom.app.cases.lattice_ranks import check_ranks
from fluxloom.app.cases.lattice_run import LatticeRun, lattice_row, lattice_run
from fluxloom.app.cases.lattice_tables import LatticeBoundaryTable, LatticeCase, LatticeInitialTable
from fluxloom.app.cases.lattice_units import FASTEST, SOUND, Units, units_of
from fluxloom.app.cases.start_tables import started
from fluxloom.app.cases.wall_motion import VELOCITY_KEYS, velocity_texts
from fluxloom.core.errors import CaseError, DatError
from fluxloom.core.layout import AoS, SoA
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.lbm.body_force import ForceField
from fluxloom.lbm.boundaries import (
    AntiBounceBack,
    Condition,
    Outflow,
    Pressure,
    PressureScheme,
    RegularisedCells,
    Slip,
    Sponge,
    Velocity,
    VelocityScheme,
    Wall,
)
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.memory import AllCells, Cells
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.lattice import LatticeBoltzmann
from fluxloom.solvers.lattice_checks import check_collision

__all__ = ["LatticeApplication", "LatticeCase"]

Array = npt.NDArray[np.float64]

_LATTICES = {lattice.name: lattice for lattice in (D2Q9, D3Q19, D3Q27)}
_BYTES = {"float16": 2, "float32": 4, "float64": 8}


class LatticeApplication:
    """The solver ``lattice`` of case files."""

    name = "lattice"
    title = "weakly compressible flow in a box (lattice Boltzmann, bodies, immersed boundaries)"
    model: type[CaseModel] = LatticeCase
    ranked = blind = True

    def estimate(self, case: LatticeCase) -> Estimate:
        """Return the size of a case without building it, what it is on the lattice, and what may spoil it."""
        cells, d = int(np.prod(case.mesh.shape)), case.mesh.dimension
        lattice, units = _lattice(case), units_of(case)
        word = _BYTES[case.lattice.precision]
        buffers = case.lattice.streaming.buffers
        more = d if case.immerses else 0
        if case.output.every or (case.movie.every and d == 2):
            more += 1 + d  # taken to be written or drawn while the next steps run
        rows = [
            ("cells", f"{cells:,} in {d} dimensions, of {units.dx:.4g}; a step is {units.dt:.4g}"),
            ("lattice", f"{lattice.name}, {strategy_name(case.lattice.collision)}: {lattice_row(case, units)}"),
        ]
        return Estimate(
            cells=cells,
            memory=cells * (buffers * lattice.q * word + (1 + d + more) * max(4, word) + 2),
            output=cells * 21 + 2000,
            rows=(*rows, *(("warning", text) for text in advices(case, units))),
        )

    def build(self, case: LatticeCase, context: Context, shares: Sequence[float] | None = None) -> FlowRun[LatticeRun]:
        """Build the flow with its conditions and bodies, in local equilibrium with the initial velocity. Collective.

        Raises
        ------
        CaseError
            For sides without a table whose opposite has one, bodies that do not fit, velocities that are too fast, and
            what does not run on so many ranks.
        """
        check_ranks(case, context.comm.size)
        given, units = shares or case.partition.given, units_of(case)
        check_length("fluid.force", len(case.fluid.force), units.dimension)
        boundary = immersed_of(case, units)
        flow = _flow(case, context, units, given if context.ranked else None, field=boundary is not None)
        if boundary is not None:
            with explained("body, particles"):
                flow.immerse(boundary)
        flow.initialise(*_start(case.initial, flow, units))
        run = lattice_run(flow, case, units, boundary, given)
        started(case, case.initial, run.flow)
        return run


def _flow(
    case: LatticeCase, context: Context, units: Units, shares: Sequence[float] | None, *, field: bool
) -> LatticeBoltzmann:
    """Return the flow, which has no populations yet; ``field``: there are immersed bodies, whose force is a field."""
    lattice = _lattice(case)
    with explained("lattice"):
        check_collision(case.lattice.collision, lattice)
    bodies = bodies_of(case, units)
    conditions = {name: _side(table, f"boundary.{name}", units) for name, table in case.boundary.items()}
    force = units.vector(case.fluid.force, units.dx / units.dt**2) if any(case.fluid.force) else ()
    in_field = field and case.lattice.streaming.buffers == 1
    try:
        with explained("boundary, body"):
            return LatticeBoltzmann(
                context, case.mesh.shape, viscosity=units.lattice_viscosity, lattice=lattice,
                collision=case.lattice.collision, streaming=case.lattice.streaming, dtype=case.lattice.precision,
                boundaries=conditions, bodies=bodies, force=ForceField(force) if in_field else force,
                cells=_cells(case, context, shares),
            )  # fmt: skip
    except DatError as error:
        raise CaseError(f"mesh, partition: {error}") from None


def _cells(case: LatticeCase, context: Context, shares: Sequence[float] | None) -> Cells:
    """Return which cells are stored, their layout, and what each of several ranks gets."""
    cells: Cells = case.lattice.cells
    cells = replace(cells, layout=AoS() if case.lattice.layout == "aos" else SoA(), shares=shares)
    cut = tuple(case.partition.cut[::-1])
    return replace(cells, cut=cut) if cut and context.ranked and isinstance(cells, AllCells) else cells


def _lattice(case: LatticeCase) -> Lattice:
    table, d = case.lattice, case.mesh.dimension
    in_space = D3Q27 if table.collision.needs_product else D3Q19
    lattice = _LATTICES[table.name] if table.name != "auto" else D2Q9 if d == 2 else in_space
    if lattice.dimensions != d:
        raise CaseError(f"lattice.name: {lattice.name} has {lattice.dimensions} dimensions, the mesh {d}")
    return lattice


def _given(table: LatticeBoundaryTable | LatticeInitialTable, key: str, units: Units) -> Callable[[Array], Array]:
    """Return the velocity that formulas describe, on the lattice, as a function of places there."""
    variables = ("x", "y", "z")[: units.dimension]
    texts = zip(velocity_texts(table, key, units.dimension), VELOCITY_KEYS, strict=False)
    parts = [formula(text, f"{key}.{name}", variables) for text, name in texts]

    def velocity(places: Array) -> Array:
        at = units.points(places)
        return _slow(np.stack([part(*at) for part in parts][::-1], axis=1) / units.speed, key)

    return velocity


def _slow(velocity: Array, key: str) -> Array:
    """Return velocities on the lattice; raise `CaseError` where one is too fast for it."""
    most = float(np.linalg.norm(velocity, axis=-1).max(initial=0.0)) / SOUND
    if most > FASTEST:
        raise CaseError(
            f"{key}: the velocity has a Mach number of {most:.3g}, and the lattice takes {FASTEST} at most: lower "
            "time.lattice_velocity"
        )
    return velocity


def _velocity(table: LatticeBoundaryTable, key: str, units: Units) -> Any:
    if table.velocity:
        check_length(f"{key}.velocity", len(table.velocity), units.dimension)
        found = units.vector(table.velocity, units.speed)
        _slow(np.array(found), key)
        return found
    return _given(table, key, units)


def _pressure(text: str, key: str, units: Units) -> Callable[[Array], Array]:
    """Return the density that a formula of the pressure means, at places on the lattice."""
    part = formula(text or "0", f"{key}.pressure", ("x", "y", "z")[: units.dimension])
    return lambda places: 1.0 + units.excess(part(*units.points(places)))


def _density(text: str, key: str, units: Units) -> float | Callable[[Array], Array]:
    """Return the density that a formula of the pressure at a side means: a number where that is the same everywhere."""
    found = _pressure(text, key, units)
    return found if re.search(r"\b[xyz]\b", text) else float(found(np.zeros((1, units.dimension)))[0])


def _side(table: LatticeBoundaryTable, key: str, units: Units) -> Condition | Sponge:
    """Return the condition of a side, in a sponge if there is one."""
    condition, sponge = _condition(table, key, units), table.sponge
    if sponge is None:
        return condition
    check_length(f"{key}.sponge.velocity", len(sponge.velocity), units.dimension)
    velocity = units.vector(sponge.velocity, units.speed) if sponge.velocity else None
    with explained(f"{key}.sponge"):
        return Sponge(condition, sponge.width / units.dx, sponge.strength, velocity=velocity)


def _condition(table: LatticeBoundaryTable, key: str, units: Units) -> Condition:
    match table.type:
        case "wall":
            moves = bool(table.velocity or table.motion())
            return Wall(_velocity(table, key, units) if moves else None, measure=True)
        case "slip":
            return Slip()
        case "velocity":
            ramp = max(1, round(table.ramp / units.dt)) if table.ramp else 0
            inlet = table.scheme or RegularisedCells()
            assert isinstance(inlet, VelocityScheme)
            return Velocity(_velocity(table, key, units), inlet, ramp)
        case "pressure":
            outlet = table.scheme or AntiBounceBack()
            assert isinstance(outlet, PressureScheme)
            return Pressure(_density(table.pressure, key, units), outlet)
        case "outflow":
            return Outflow()


def _start(table: LatticeInitialTable, flow: LatticeBoltzmann, units: Units) -> Sequence[Array]:
    """Return the initial density and velocity over the cells."""
    shape, d = flow.box.shape, units.dimension
    if not table.changed(("velocity_x", "velocity_y", "velocity_z", "pressure")):
        return np.ones((1,) * d), np.zeros((1,) * (d + 1))
    places = np.stack([at.ravel() for at in np.indices(shape, dtype=np.float64)], axis=1)
    density = _pressure(table.pressure, "initial", units)(places).reshape(shape)
    return density, _given(table, "initial", units)(places).reshape(*shape, d)
