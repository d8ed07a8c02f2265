"""The case of compressible flow on any mesh: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.cases.compressible.setup import (
    boundaries_of,
    free_stream_of,
    rotation_of,
    scheme_of,
    source_of,
    start_of,
    up_of,
)
from fluxloom.cases.compressible.tables import (
    BOUNDARY_KEYS,
    CompressibleCase,
    ImplicitTable,
    MultigridTable,
    SurfaceTable,
)
from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import strategy_of
from fluxloom.cases.shared.mesh import by_key, flow_domain, flow_mesh_sizes
from fluxloom.cases.shared.monitors import ForcesTable, References, run_of, wall_reference
from fluxloom.cases.shared.start_tables import started
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.flows.compressible.steps import Explicit
from fluxloom.flows.volumes import flow_volumes
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.compressible.cycles import Implicit, Multigrid
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.surface import AerodynamicReference, SurfaceForce, SurfaceForces

if TYPE_CHECKING:
    from fluxloom.monitors.forces import Reference

__all__ = ["CompressibleApplication", "CompressibleCase", "MassBalance", "references_of", "surface_of"]

Array = npt.NDArray[np.float64]

_COMPONENTS = "uvw"
_WHOLE = "all patches"
_NOTHING = 1e-12
"""Part of the mass that passes all patches which is rounding."""


def references_of(flow: CompressibleFlow, stream: FreeStream, up: int) -> References:
    """Return what coefficients refer to: the free stream, where their table says nothing else.

    Of a gas at rest there are coefficients where the table has a speed; forces there are always.

    Parameters
    ----------
    flow, stream
        The flow, and what it is far away.
    up
        Axis from the lower to the upper side.
    """
    gas = flow.gas

    def found(table: ForcesTable) -> Reference | None:
        """Return the reference of a table; None: there are no coefficients."""
        from fluxloom.monitors.forces import Reference

        at_rest = stream.mach <= 0.0
        if at_rest and not table.speed:
            if table.area or table.length or table.drag or table.lift:
                raise SolverError("the free stream is at rest: coefficients need speed")
            return None
        area, length = table.area or 1.0, table.length or 1.0
        drag, lift, pitch = tuple(table.drag), tuple(table.lift), ()
        if not (table.speed and drag and lift):
            far = AerodynamicReference(replace(stream, mach=1.0) if at_rest else stream, gas, area, length, up)
            if not (drag or lift):
                pitch = (0.0, 1.0, 0.0) if far.axis == 2 else (0.0, 0.0, -1.0)
            along, across = (tuple(way.tolist()) for way in far.along)
            drag, lift = drag or along, lift or across
        speed, density = table.speed or stream.speed(gas), stream.density(gas)
        pressure = None if table.speed else stream.dynamic_pressure(gas)
        return Reference(speed, area, length, density, drag, lift, pitch, pressure)

    return found


class MassBalance(Monitor):
    """What flows through all patches together."""

    def __init__(self, run: Compressible) -> None:
        self._run, self._last = run, -1
        self._forces = SurfaceForces(run.solver, {_WHOLE: list(run.patches)})
        self._found: SurfaceForce | None = None

    def now(self) -> SurfaceForce:
        """Return what passes in the present step. Collective."""
        if self._found is None or self._last != self._run.steps:
            self._run.fluxes()
            self._forces.take()
            self._found, self._last = self._forces.collect()[_WHOLE], self._run.steps
        return self._found

    @property
    def imbalance(self) -> float:
        """Mass that leaves through all patches, as a part of what enters or leaves, whichever is more; 0: neither.

        1 where nothing enters, -1 where nothing leaves.
        """
        whole = self.now()
        return 2.0 * whole.mass / (whole.through + abs(whole.mass)) if whole.through > 0.0 else 0.0

    def columns(self) -> dict[str, float]:
        """Return the imbalance."""
        return {"mass_imbalance": self.imbalance}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the imbalance in words."""
        whole = self.now()
        if not whole.through > 0.0:
            return ()
        return (("mass", f"{whole.mass:.3e} leaves in all, {_share(whole.mass, whole.through)}"),)


def _share(mass: float, through: float) -> str:
    """Return in words what part of the mass that passes all patches leaves in all."""
    enters, leaves = 0.5 * (through - mass), 0.5 * (through + mass)
    if min(enters, leaves) <= _NOTHING * through:
        return "nothing enters" if mass > 0.0 else "nothing leaves"
    more = "what enters" if enters >= leaves else "what leaves"
    return f"{mass / max(enters, leaves):.2e} of {more}"


def _names(flow: CompressibleFlow) -> list[str]:
    """Return the names of the primitive variables."""
    return ["rho", *_COMPONENTS[: flow.dimension], "p", *(["nu_tilde"] if flow.turbulent else [])]


def surface_of(table: SurfaceTable, stream: FreeStream, references: References) -> Monitor:
    """Return what writes the tables of ``[surface]``: one a patch, one a cut."""
    from fluxloom.monitors.walls import Walls

    walls = Walls(
        "surface", table.patches, wall_reference(references), pressure=stream.pressure, axis=table.axis,
        cuts=table.cuts, tables={f"surface_{name}": [name] for name in table.patches}, cut="cut",
        picture="pressure.png",
    )  # fmt: skip
    walls.table = "surface"
    return walls


_BYTES = {2: 1_800, 3: 3_200}
"""Of a cell by dimension, on host and device while the geometry is made."""


class CompressibleApplication:
    """The solver ``compressible`` of case files."""

    name = "compressible"
    title = "compressible flow on any mesh (Euler, Navier-Stokes, averaged; finite volumes)"
    model: type[CaseModel] = CompressibleCase
    distributed = True

    def estimate(self, case: CompressibleCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        cells, points, d = flow_mesh_sizes(case.mesh)
        return Estimate(
            cells=cells,
            memory=cells * _BYTES[d],
            output=cells * (8 * (d + 5) + 8 * 4 + 9) + points * 24,
            rows=(("cells", f"{cells:,} in {d} dimensions"), ("nodes", f"{points:,}")),
        )

    def build(
        self, case: CompressibleCase, context: Context, shares: Sequence[float] | None = None
    ) -> FlowRun[Compressible]:
        """Build the mesh, its geometry and the loops, and set the states at the start. Collective.

        Raises
        ------
        CaseError
            For a patch without a table or a table without a patch, and what does not fit the mesh.
        """
        return _run(case, context, shares or case.partition.given)


def _run(case: CompressibleCase, context: Context, shares: Sequence[float] | None) -> FlowRun[Compressible]:
    """Return the case at its start. Collective."""
    with by_key(", ".join(BOUNDARY_KEYS)):
        domain = flow_volumes(flow_domain(case.mesh, case.partition, shares), context, case.boundary)
    d, gas = domain.volumes.dimension, case.gas.value
    up = up_of(case, domain.volumes, context.comm)
    stream = free_stream_of(case.flow, gas, d, up)
    keys = {"start": "initial", "gradients": "scheme.gradients", "source": "source"}
    keys["steps"] = f'time.integrator = "{case.time.integrator}"'
    with by_key(other="boundary", multigrid="multigrid", **keys):
        flow = Compressible(
            domain, context, boundaries=boundaries_of(case, gas, stream, d, up), gas=gas, stream=stream,
            start=start_of(case, d), scheme=scheme_of(case), steps=_steps(case), rotation=rotation_of(case, d),
            source=source_of(case, d),
        )  # fmt: skip
    started(case, case.initial, flow)
    references = references_of(flow.solver, stream, up)
    monitors = _monitors(case, flow)
    if case.surface.patches:
        monitors.append(surface_of(case.surface, stream, references))
    until = Until(case.time.end, case.time.residual_drop)
    with by_key(dt="time.dt"):
        return run_of(case, flow, until, monitors, references, stream.pressure)


def _monitors(case: CompressibleCase, run: Compressible) -> list[Monitor]:
    """Return what the solver alone looks at. Collective."""
    flow = run.solver
    found: list[Monitor] = [MassBalance(run)]
    if outlets := [name for name, table in case.boundary.items() if table.type == "supersonic-outlet"]:
        from fluxloom.cases.compressible.outlets import OutletObserver

        found.append(OutletObserver(flow, outlets))
    if inlets := [name for name, table in case.boundary.items() if table.type == "supersonic-inlet"]:
        from fluxloom.cases.compressible.outlets import InletObserver

        found.append(InletObserver(flow, inlets))
    return found


def _steps(case: CompressibleCase) -> Explicit | Implicit | Multigrid:
    """Return how a flow advances."""
    if case.time.integrator == "implicit":
        return strategy_of(Implicit, case.implicit or ImplicitTable())
    if case.time.integrator == "multigrid":
        return strategy_of(Multigrid, case.multigrid or MultigridTable())
    return case.time.explicit
