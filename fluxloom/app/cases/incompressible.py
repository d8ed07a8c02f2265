"""The case of incompressible flow on any mesh: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.expressions import formula
from fluxloom.app.cases.incompressible_run import IncompressibleRunner
from fluxloom.app.cases.incompressible_tables import (
    VELOCITY_KEYS,
    FlowBoundaryTable,
    FlowMeshTable,
    IncompressibleCase,
    InitialVelocityTable,
    LesTable,
)
from fluxloom.core.errors import CaseError, SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.fv.control_volumes import ControlVolumes, control_volumes
from fluxloom.fv.eddy_viscosity import Qr, S3pqr, Sigma, Smagorinsky, Wale
from fluxloom.fv.incompressible import OUTFLOW, PRESCRIBED
from fluxloom.fv.incompressible_boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry, boundary_table
from fluxloom.linalg.approximate_inverse import ApproximateInverse
from fluxloom.linalg.chebyshev import Chebyshev
from fluxloom.linalg.jacobi import Diagonal, Jacobi
from fluxloom.linalg.multigrid import SmoothedAggregation
from fluxloom.linalg.operators import Operator, Recipe
from fluxloom.linalg.ssor import SSOR
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box2d, box3d, read_data
from fluxloom.mesh.check import check as check_mesh
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.incompressible import EddyViscosity, Incompressible

__all__ = ["IncompressibleApplication", "IncompressibleCase"]

Array = npt.NDArray[np.float64]

_CELLS_OF_A_BOX = {"triangle": 2, "tetra": 6, "prism": 2, "pyramid": 6}
_BYTES = {2: 2_500, 3: 4_000}
"""Of a cell by dimension, as measured: matrices on the host while they are assembled, and on the device."""

_BALANCED, _ALONG = 1e-6, 1e-3
"""Parts of ``sum |u| A``, of all given velocities and of a face, that may be missing in the balance and pass a wall.

Files with coordinates in single precision have normals of few digits.
"""


@dataclass(frozen=True)
class Unpreconditioned:
    """The recipe of the identity."""

    def build(self, matrix: Operator) -> Diagonal:
        """Return ``z = r``."""
        rows = matrix.rows
        return Diagonal(rows.context.dat(rows, np.ones(rows.size), "identity"))


class IncompressibleApplication:
    """The solver ``incompressible`` of case files."""

    name = "incompressible"
    title = "incompressible flow on any mesh (symmetry-preserving finite volumes)"
    model: type[CaseModel] = IncompressibleCase
    ranked = False

    def estimate(self, case: IncompressibleCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        table = case.mesh
        if table.file:
            data = read_data(table.file)
            cells, points, d = data.n_cells, data.n_points, data.dimension
        else:
            boxes = table.nx * table.ny * max(1, table.nz)
            points, d = (table.nx + 1) * (table.ny + 1) * (table.nz + 1), table.dimension
            points += boxes if table.kind == "pyramid" else 0
            cells = boxes * _CELLS_OF_A_BOX.get(table.kind, 1)
        return Estimate(
            cells=cells,
            memory=cells * _BYTES[d],
            output=cells * (8 * (d + 2) + 8 * 4 + 9) + points * 24,
            rows=(("cells", f"{cells:,} in {d} dimensions"), ("nodes", f"{points:,}")),
        )

    def build(self, case: IncompressibleCase, context: Context) -> IncompressibleRunner:
        """Build the mesh, the matrices and the loops, and make the initial velocity free of divergence.

        Raises
        ------
        CaseError
            For a patch without a table or a table without a patch, velocities that do not fit the mesh or let more in
            than out, and what the preconditioner refuses.
        """
        if context.ranked:
            raise CaseError(f"the solver {self.name} does not run on several ranks")
        mesh = _mesh(case.mesh)
        _check_patches(case, mesh)
        volumes = control_volumes(mesh, [(first, second) for first, second in case.mesh.periodic])
        boundaries = _boundaries(case.boundary, volumes)
        _check_velocities(case.boundary, volumes, boundaries)
        solver = _solver(case, context, volumes, boundaries)
        start = _velocity(case.initial, "initial", volumes.dimension)
        if not solver.initialise(start).converged:
            raise CaseError(
                f"pressure.iterations: {case.pressure.iterations} do not suffice to make the initial velocity free of "
                "divergence; raise them or choose another pressure.preconditioner"
            )
        if not case.time.dt and not case.fluid.viscosity and not solver.us.read().any():
            raise CaseError("time.dt: a fluid at rest without viscosity has no largest stable step: give dt")
        return IncompressibleRunner(solver, mesh, case.time.dt, case.case.name)


def _solver(
    case: IncompressibleCase, context: Context, volumes: ControlVolumes, boundaries: Mapping[str, Boundary]
) -> Incompressible:
    pressure, force = case.pressure, case.fluid.force
    _check_length("fluid.force", len(force), volumes.dimension)
    recipes: Mapping[str, Callable[[], Recipe]] = {
        "jacobi": Jacobi,
        "chebyshev": Chebyshev,
        "approximate_inverse": ApproximateInverse,
        "ssor": SSOR,
        "smoothed_aggregation": SmoothedAggregation,
        "none": Unpreconditioned,
    }
    try:
        return Incompressible(
            context, volumes, case.fluid.viscosity, boundaries, force=force,
            stop=Stop(rtol=pressure.rtol, iterations=pressure.iterations),
            preconditioner=recipes[pressure.preconditioner](), scheme=case.time.scheme, model=_model(case.les),
        )  # fmt: skip
    except SolverError as error:
        raise CaseError(f'pressure.preconditioner = "{pressure.preconditioner}": {error}') from None


def _model(table: LesTable) -> EddyViscosity | None:
    """Return the subgrid model."""
    models = {"smagorinsky": Smagorinsky, "wale": Wale, "qr": Qr, "sigma": Sigma, "s3pqr": S3pqr}
    if table.model == "none":
        return None
    return models[table.model](c=table.constant) if table.constant else models[table.model]()


def _mesh(table: FlowMeshTable) -> MeshData:
    """Return the mesh of a file, or of a rectangle or a box."""
    if table.file:
        data = read_data(table.file)
        check_mesh(data)
        return data
    spans = (table.x, table.y, table.z)[: table.dimension]
    lengths, origin = [high - low for low, high in spans], [low for low, _ in spans]
    if table.dimension == 2:
        kind = "quad" if table.kind == "auto" else table.kind
        return box2d(table.nx, table.ny, lengths, kind, origin=origin, perturb=table.perturb)
    kind = "hexahedron" if table.kind == "auto" else table.kind
    return box3d(table.nx, table.ny, table.nz, lengths, kind, origin=origin, perturb=table.perturb)


def _check_patches(case: IncompressibleCase, mesh: MeshData) -> None:
    """Raise unless each patch is periodic or has a table, and each name is that of a patch."""
    known, paired = list(mesh.patches), {name for pair in case.mesh.periodic for name in pair}
    text = ", ".join(known) or "none"
    for key, names in (("mesh.periodic", paired), ("boundary", case.boundary)):
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known)
                raise CaseError(f"{key}: the mesh has no patch {name!r}{hint} (patches: {text})")
    for name in known:
        if name in paired and name in case.boundary:
            raise CaseError(f"boundary.{name}: mesh.periodic names this patch too; leave out one of them")
        if name not in paired and name not in case.boundary:
            raise CaseError(
                f"boundary: the patch {name!r} has none; add a table [boundary.{name}] with a type (wall, inflow, "
                "outflow or symmetry), or name it in mesh.periodic"
            )


def _check_length(key: str, given: int, d: int) -> None:
    if given not in (0, d):
        raise CaseError(f"{key}: {d} numbers are wanted, as the mesh has {d} dimensions, not {given}")


def _velocity(table: InitialVelocityTable | FlowBoundaryTable, key: str, d: int) -> Callable[[Array], Array]:
    """Return the velocity that formulas describe, as a function of places ``(n, d)``."""
    for name in table.changed(VELOCITY_KEYS[d:]):
        raise CaseError(f"{key}.{name}: the mesh has {d} dimensions; leave it out")
    variables = ("x", "y", "z")[:d]
    parts = [formula(getattr(table, name) or "0", f"{key}.{name}", variables) for name in VELOCITY_KEYS[:d]]
    return lambda places: np.stack([part(*places.T) for part in parts], axis=1)


def _boundaries(tables: Mapping[str, FlowBoundaryTable], volumes: ControlVolumes) -> dict[str, Boundary]:
    found: dict[str, Boundary] = {}
    for name, table in tables.items():
        _check_length(f"boundary.{name}.velocity", len(table.velocity), volumes.dimension)
        if table.type == "wall":
            found[name] = NoSlip(tuple(table.velocity))
        elif table.type == "inflow":
            formulas = _velocity(table, f"boundary.{name}", volumes.dimension)
            found[name] = Inflow(tuple(table.velocity) if table.velocity else formulas)
        else:
            found[name] = Outflow() if table.type == "outflow" else Symmetry()
    return found


def _check_velocities(
    tables: Mapping[str, FlowBoundaryTable], volumes: ControlVolumes, boundaries: Mapping[str, Boundary]
) -> None:
    """Raise where a wall moves along its normal, or without an outflow more flows in than out."""
    kinds, given = boundary_table(volumes, boundaries)
    through = np.einsum("ij,ij->i", given, volumes.areas[volumes.interior :])
    size = np.linalg.norm(given, axis=1) * volumes.area[volumes.interior :]
    for name, elements in volumes.patches.items():
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        if tables[name].type == "wall" and (np.abs(through[place]) > _ALONG * size[place]).any():
            raise CaseError(
                f"boundary.{name}.velocity: a wall slides along itself, and {tables[name].velocity} has a part along "
                'its normal; type = "inflow" lets fluid through'
            )
    prescribed = kinds == PRESCRIBED
    net, scale = float(through[prescribed].sum()), float(size[prescribed].sum())
    if not (kinds == OUTFLOW).any() and abs(net) > _BALANCED * scale:
        way = "in" if net < 0 else "out"
        raise CaseError(
            f"boundary: the given velocities let {abs(net):.6g} more {way}, and no patch has "
            'type = "outflow", where the flow is free'
        )
