"""The Airfoil benchmark as a run sees it: inviscid flow around NACA 0012."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.airfoil.surface import AirfoilSurface
from fluxloom.flows.flow_plan import COMPONENTS, speed_quantity, velocity_quantities
from fluxloom.flows.gas_fields import airfoil_watch
from fluxloom.flows.volumes import usual_context
from fluxloom.fv.compressible.gas import total_pressure_ratio
from fluxloom.fv.gradients.plane_gradient import PlaneGradient
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.data.once import Once
from fluxloom.mesh.generate.airfoil import AirfoilMesh, airfoil_mesh, airfoil_slice
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.ranks.distribute import DistributedMesh, Partition, distribute
from fluxloom.run.fields import Fields, Quantity, curl, curl_quantities, gradient_quantities
from fluxloom.run.flow import Flow, HistoryPanel, Picture, Until
from fluxloom.run.measures import Averaged, AveragedValue, PointValues
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.airfoil.flow import Airfoil as Solver
from fluxloom.solvers.airfoil.flow import AirfoilConstants, primitive, shape
from fluxloom.solvers.airfoil.forces import PATCH

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Airfoil", "airfoil_part"]

_WINDOW = (-0.5, 1.5, -0.75, 0.75)


def airfoil_part(
    context: Context, i: int, j: int, method: Partition = "auto", shares: Sequence[float] | None = None
) -> AirfoilMesh | DistributedMesh:
    """Return what a rank needs of the mesh: everything on a rank alone, else its part, made from slices.

    Parameters
    ----------
    context
        Has the ranks; on several of them this is collective.
    i, j
        As in `fluxloom.mesh.generate.airfoil.airfoil_mesh`.
    method, shares
        As `fluxloom.mesh.ranks.distribute.distribute` takes them.
    """
    comm = context.comm
    if comm.size == 1:
        return airfoil_mesh(i, j)
    return distribute(airfoil_slice(i, j, comm.rank, comm.size), comm, method=method, shares=shares)


class Airfoil(Flow):
    """The Airfoil benchmark: steady inviscid flow around NACA 0012, by explicit iterations.

    Parameters
    ----------
    mesh
        The integers ``(i, j)`` of `fluxloom.mesh.generate.airfoil.airfoil_mesh`, or the mesh; on several ranks the
        integers, or this rank's part of it, of which the whole is not known. Everything is collective then.
    context
        Where it runs; by default the CPU.
    constants
        Gas and scheme.
    schedule
        For every loop.
    fused
        Whether loops may be fused.
    layout
        Of values with several components.
    method, shares
        How several ranks divide a mesh of integers, see `fluxloom.mesh.ranks.distribute.distribute`.

    Attributes
    ----------
    solver
        `fluxloom.solvers.airfoil.flow.Airfoil`.
    """

    def __init__(
        self,
        mesh: tuple[int, int] | AirfoilMesh | DistributedMesh,
        context: Context | None = None,
        *,
        constants: AirfoilConstants | None = None,
        schedule: Schedule | None = None,
        fused: bool = True,
        layout: Layout | None = None,
        method: Partition = "auto",
        shares: Sequence[float] | None = None,
    ) -> None:
        self.context = context = usual_context(context)
        self.constants, self._shape = constants or AirfoilConstants(), None
        if not isinstance(mesh, tuple | AirfoilMesh | DistributedMesh):
            raise SolverError(f"mesh: two integers (i, j) are wanted, or an AirfoilMesh, not {mesh!r}")
        if isinstance(mesh, tuple):
            self._shape = mesh
            with activity("making the mesh", " x ".join(str(count) for count in mesh)):
                mesh = airfoil_part(context, *mesh, method, shares)
        self._kept = None if isinstance(mesh, DistributedMesh) else mesh
        self.solver = Solver(context, mesh, self.constants, schedule=schedule, fused=fused, layout=layout)
        self.partition = self.solver.partition

    def start_from(self, start: Start) -> None:
        """Start from density, velocity and pressure of another result: ``rho E = p / (gamma - 1) + rho |u|^2 / 2``."""
        from fluxloom.solvers.airfoil.probes import corners_of

        solver = self.solver
        if not start.held({"run.flow.solver.q": solver.q}, "mesh"):
            names = ("density", "u", "v", "pressure")
            corners = self.context.dat(solver.cells, name="corners", shape=(8,), dtype=solver.x.scalar.numpy)
            Loop(corners_of, solver.cells, solver.x[solver.c2n], corners)()  # points of the rim are of other ranks
            points = corners.read().reshape(-1, 2).astype(np.float64)
            mesh = MeshData(points, {"quad": np.arange(len(points), dtype=np.int32).reshape(-1, 4)})
            found = start.at(cell_geometry(mesh)[1], names, bounded=True)
            rho, u, v, p = (found[name] for name in names)
            energy = p / (self.constants.gamma - 1.0) + 0.5 * rho * (u * u + v * v)
            solver.q.write(np.stack([rho, rho * u, rho * v, energy], axis=1))
        _, solver.iterations = start.clock

    def mesh(self) -> MeshData:
        """Return the whole mesh with the two sides of the cut joined; on several ranks it is made anew."""
        if self._kept is not None:
            return self._kept.to_mesh_data()
        if self._shape is None:
            raise MeshError("the mesh was given in parts without the integers it was made with: the whole is not known")
        return airfoil_mesh(*self._shape).to_mesh_data()

    def check_end(self, until: Until) -> None:
        """Raise `SolverError` for ends that these iterations do not look for."""
        if until.time or until.steady:
            raise SolverError("until: the Airfoil counts iterations alone: give Steps(count)")

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.cells.total

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.cells.part

    @property
    def loops(self) -> Sequence[Loop]:
        """The five loops."""
        return self.solver.loops

    @property
    def chain(self) -> Chain | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One iteration."""
        return self.solver.chain

    @property
    def steps(self) -> int:
        """Iterations since the flow began."""
        return self.solver.iterations

    def advance(self, until: Until) -> float:
        """Run one iteration, two sub-steps; return the root mean square change of the last one."""
        self.solver.iterate()
        return self.solver.rms()

    @property
    def patches(self) -> Sequence[str]:
        """The wall."""
        return (PATCH,)

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> AirfoilSurface:
        """Return the wall as a surface, with the force of the pressure. Collective."""
        return AirfoilSurface(self.solver, patches, about)

    def columns(self) -> dict[str, float]:
        """Return the iteration and the root mean square change."""
        return {"iteration": float(self.steps), "residual": self.solver.rms() if self.steps else math.nan}

    def fields(self) -> Fields:
        """Return density, velocity, pressure, energy, Mach number in the owned cells; ``cp = 2 (p - 1) / (gamma M^2)``.

        Derived ones are its velocity by components and magnitude, what its gradient says, and pressures over those of
        the free stream.
        """
        found, gas, far = cache(self.solver.fields), self.constants, 1.0
        dynamic = 0.5 * gas.gamma * far * gas.mach**2

        def total() -> npt.NDArray[Any]:
            """Return the pressure of the gas at rest, ``p_0 = p (1 + (gamma - 1) / 2 M^2)^(gamma / (gamma - 1))``."""
            return found()["pressure"] * total_pressure_ratio(found()["mach"], gas.gamma)

        def velocity() -> npt.NDArray[Any]:
            """Return the velocity, ``(n, 2)``."""
            return found()["velocity"]

        names = {"density": "density", "velocity": "velocity", "pressure": "pressure", "energy": "energy per volume",
                 "mach": "Mach number"}  # fmt: skip
        quantities = {
            name: Quantity("", text, lambda name=name: found()[name], 2 if name == "velocity" else 1)
            for name, text in names.items()
        }
        gradient = cache(lambda: self._gradient.now())
        turning = curl_quantities(lambda: curl(gradient()), 2, "") | gradient_quantities(gradient, "")
        derived = velocity_quantities(velocity, 2, "") | speed_quantity(velocity, "") | turning | {
            "total_pressure": Quantity("", "pressure of the gas at rest", total),
            "cp": Quantity("", "pressure coefficient", lambda: (found()["pressure"] - far) / dynamic),
        }  # fmt: skip
        return Fields(quantities, derived)

    @Once
    def _gradient(self) -> PlaneGradient:
        where, w, fill = self._primitive()
        return PlaneGradient(self.context, self.solver.e2c, where, w, [fill], first=1)

    def _primitive(self) -> tuple[Dat, Dat, Loop]:
        """Return centres and areas of cells, a dat for density, velocity and pressure, and the loop that fills it."""
        solver, kind = self.solver, "float32" if self.context.device.refuses_double else "float64"
        w = self.context.dat(solver.cells, name="primitive", shape=(4,), dtype=kind)
        where = self.context.dat(solver.cells, name="where", shape=(3,), dtype=kind)
        Loop(shape, solver.cells, solver.x[solver.c2n], where)()
        return where, w, Loop(primitive, solver.cells, solver.q, w, gm1=self.constants.gamma - 1.0)

    def averaged(self) -> Averaged:
        """Return density, velocity and pressure."""
        solver, (where, w, fill) = self.solver, self._primitive()
        values = [AveragedValue("density", w, 0), AveragedValue("pressure", w, 3)]
        return Averaged(
            solver.cells, values, Dat.read, lambda: where.read()[:, :2], lambda: where.read()[:, 2], w,
            COMPONENTS[:2], first=1, before=[fill], dtype=w.scalar.numpy,
        )  # fmt: skip

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return the residual and the extremes of pressure and Mach number."""
        fields, comm = self.fields(), self.context.comm
        values = [fields[name] for name in ("pressure", "mach")]
        low = comm.reduce(np.array([v.min(initial=np.inf) for v in values]), "min")
        high = comm.reduce(np.array([v.max(initial=-np.inf) for v in values]), "max")
        return (
            ("residual", f"{self.solver.rms():.10e}"),
            ("pressure", f"{low[0]:.4f} to {high[0]:.4f} (free stream 1)"),
            ("Mach number", f"{low[1]:.4f} to {high[1]:.4f} (free stream {self.constants.mach:.4g})"),
        )

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return pressure and Mach number around the section."""
        where = f"NACA 0012 at Mach {self.constants.mach:.3g} (iteration {self.steps:,})"
        return (
            Picture("pressure", f"Pressure around {where}", "pressure / free stream", _WINDOW, "RdBu_r", 1.0),
            Picture("mach", f"Mach number around {where}", "local Mach number", _WINDOW, "viridis"),
        )

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return the residual."""
        return "iteration", [HistoryPanel("root mean square change", ("residual",), logarithmic=True)]

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples density, velocity, pressure and Mach number of cells. Collective."""
        from fluxloom.solvers.airfoil.probes import AirfoilProbes

        return AirfoilProbes(self.solver, points, capacity, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return airfoil_watch(self.solver, self.constants.gamma, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return f"lower flow.cfl (now {self.constants.cfl:.3g}) or raise flow.eps (now {self.constants.eps:.3g})"
