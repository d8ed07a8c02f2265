"""The case of lattice Boltzmann flow: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.lattice.advice import advices
from fluxloom.cases.lattice.bodies import bodies_of, immersion_of, particles_of
from fluxloom.cases.lattice.monitors import lattice_monitors
from fluxloom.cases.lattice.tables import LatticeBoundaryTable, LatticeCase, LatticeInitialTable, units_of
from fluxloom.cases.shared.start import explained
from fluxloom.cases.shared.start_tables import started
from fluxloom.cases.shared.wall_motion import velocity_values
from fluxloom.core.dtypes import AoS, SoA
from fluxloom.core.errors import CaseError, DatError, SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.flows.lattice.given.numerics import Numerics
from fluxloom.flows.lattice.given.sides import Inflow, NoSlip, Outflow, PressureSide, Side, Slip, Sponge
from fluxloom.flows.lattice.given.start import Start
from fluxloom.lbm.boundaries import AntiBounceBack, PressureScheme, RegularisedCells, VelocityScheme
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27
from fluxloom.lbm.streaming.memory import AllCells, Cells, FluidCells
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.values.value import Value

__all__ = ["LatticeApplication", "LatticeCase"]

Array = npt.NDArray[np.float64]

_LATTICES = {lattice.name: lattice for lattice in (D2Q9, D3Q19, D3Q27)}
_BYTES = {"float16": 2, "float32": 4, "float64": 8}


class LatticeApplication:
    """The solver ``lattice`` of case files."""

    name = "lattice"
    title = "weakly compressible flow in a box (lattice Boltzmann, bodies, immersed boundaries)"
    model: type[CaseModel] = LatticeCase
    distributed = blind = True

    def estimate(self, case: LatticeCase) -> Estimate:
        """Return the size of a case without building it, what it is on the lattice, and what may spoil it."""
        cells, d = int(np.prod(case.mesh.shape)), case.mesh.dimension
        with explained("lattice.name"):
            lattice = _numerics(case).lattice_in(d)
        units = units_of(case)
        word = _BYTES[case.lattice.precision]
        buffers = case.lattice.streaming.buffers
        varied = any(isinstance(value, Value) and value.in_space for value in case.fluid.force)
        more = d if case.immerses or varied else 0
        if case.output.every or (case.movie.every and d == 2):
            more += 1 + d  # taken to be written or drawn while the next steps run
        rows = [
            ("cells", f"{cells:,} in {d} dimensions, of {units.dx:.4g}; a step is {units.dt:.4g}"),
            ("lattice", f"{lattice.name}, {strategy_name(case.lattice.collision)}: {units}"),
        ]
        return Estimate(
            cells=cells,
            memory=cells * (buffers * lattice.q * word + (1 + d + more) * max(4, word) + 2),
            output=cells * 21 + 2000,
            rows=(*rows, *(("warning", text) for text in advices(case, units))),
        )

    def build(self, case: LatticeCase, context: Context, shares: Sequence[float] | None = None) -> FlowRun[Lattice]:
        """Build the flow with its conditions and bodies, in local equilibrium with the initial velocity. Collective.

        Raises
        ------
        CaseError
            For sides without a table whose opposite has one, bodies that do not fit, velocities that are too fast, and
            what does not run on so many ranks.
        """
        _check_ranks(case, context.comm.size)
        units = units_of(case)
        try:
            flow = Lattice(
                case.mesh.shape[::-1], units, context, boundaries=_sides(case), bodies=bodies_of(case),
                particles=particles_of(case), force=case.fluid.force, start=_start(case.initial, units.dimension),
                numerics=_numerics(case, context, shares or case.partition.given), immersion=immersion_of(case),
                residual_interval=case.time.residual_interval,
            )  # fmt: skip
            started(case, case.initial, flow)
            until = Until(case.time.end, case.time.steady)
            monitors = lattice_monitors(case, flow)
            return FlowRun(flow, case.case.name, until, monitors)
        except DatError as error:
            raise CaseError(f"mesh, partition: {error}") from None
        except SolverError as error:
            raise CaseError(str(error)) from None


def _check_ranks(case: LatticeCase, ranks: int) -> None:
    """Raise `CaseError` where a case does not run on so many ranks."""
    if ranks == 1:
        return
    cut = case.partition.cut
    if isinstance(case.lattice.cells, FluidCells):
        if not case.lattice.streaming.own_cells:
            raise CaseError(
                f"lattice.streaming: {strategy_name(case.lattice.streaming)!r} with lattice.cells = 'fluid' runs on "
                f"one rank only; on {ranks} ranks take 'pull' or 'three-phase'"
            )
        if cut:
            raise CaseError(
                "partition.cut: with lattice.cells = 'fluid' each rank gets a piece of the list of fluid cells, which "
                "is not cut along axes; leave the key out, or give partition.shares"
            )
    if cut and prod(cut) != ranks:
        parts = " x ".join(map(str, cut))
        raise CaseError(f"partition.cut: {parts} are {prod(cut)} parts, but there are {ranks} ranks")


def _numerics(case: LatticeCase, context: Context | None = None, shares: Sequence[float] | None = None) -> Numerics:
    """Return how a case is computed; ``shares`` are what each of several ranks gets of the cells."""
    table = case.lattice
    cells: Cells = replace(table.cells, layout=AoS() if table.layout == "aos" else SoA())
    if context is not None and context.distributed:
        cells, cut = replace(cells, shares=shares), tuple(case.partition.cut[::-1])
        cells = replace(cells, cut=cut) if cut and isinstance(cells, AllCells) else cells
    lattice = None if table.name == "auto" else _LATTICES[table.name]
    return Numerics(lattice, table.collision, table.streaming, table.precision, cells)


def _sides(case: LatticeCase) -> dict[str, Side]:
    """Return what happens at the sides of the box."""
    d = case.mesh.dimension
    turning = case.turning
    return {name: _side(table, f"boundary.{name}", d, name in turning) for name, table in case.boundary.items()}


def _side(table: LatticeBoundaryTable, key: str, d: int, turns: bool) -> Side:
    """Return what happens at a side, in a sponge if there is one; ``turns``: the torque on a wall is wanted."""
    side, sponge = _condition(table, key, d, turns), table.sponge
    return side if sponge is None else Sponge(side, sponge.width, sponge.strength, sponge.velocity)


def _condition(table: LatticeBoundaryTable, key: str, d: int, turns: bool) -> Side:
    velocity = velocity_values(table, key, d)
    match table.type:
        case "wall":
            return NoSlip(velocity, turns)
        case "slip":
            return Slip()
        case "velocity":
            inlet = table.scheme or RegularisedCells()
            assert isinstance(inlet, VelocityScheme)
            return Inflow(velocity, inlet, table.ramp)
        case "pressure":
            outlet = table.scheme or AntiBounceBack()
            assert isinstance(outlet, PressureScheme)
            return PressureSide(table.pressure, outlet)
        case "outflow":
            return Outflow()


def _start(table: LatticeInitialTable, d: int) -> Start:
    """Return how a flow begins."""
    return Start(velocity_values(table, "initial", d), table.pressure or 0.0)
