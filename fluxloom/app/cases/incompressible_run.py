"""A case of incompressible flow as it runs: steps, residual, fields and summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Picture
from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.core.errors import SolverError
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.identity import unique
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.report import LoopReport
from fluxloom.dsl.steps import Reset
from fluxloom.kernel.frontend import kernel
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["IncompressibleRunner"]

_COMPONENTS = ("u", "v", "w")


@kernel
def change(u: Read, volume: Read, before: RW, total: Inc, *, d: Const[int]):
    """``sum Omega |u - u_before|^2``, then ``u_before = u``."""
    for k in range(d):
        step = u[k] - before[k]
        total[0] += volume[0] * step * step
        before[k] = u[k]


class IncompressibleRunner:
    """The solver of incompressible flow, ready to advance by steps.

    Parameters
    ----------
    solver
        In its initial state.
    mesh
        What it was made of.
    dt
        Length of a step; 0: the largest stable one.
    name
        Of the case.
    """

    part = None
    partition = None
    chain: Chain | None = None
    """None: how many iterations the pressure takes is known only when it is solved."""

    def __init__(self, solver: Incompressible, mesh: MeshData, dt: float, name: str) -> None:
        self.solver, self.dt, self.name = solver, dt, name
        self._mesh = mesh
        self._iterations, self._last, self._residual = 0, 0, float("nan")
        context, d = solver.context, solver.dimension
        self._volume = float(solver.volumes.volumes.sum())
        self._before = context.dat(solver.elements, solver.u.read(), "u_before")
        self._total = context.scalar(0.0, "change")
        measure = Loop(change, solver.elements, solver.u, solver.weight, self._before, self._total, d=d)
        self._measure = Chain([Reset(self._total), measure], name="change")

    def advance(self) -> None:
        """Advance by one step.

        Raises
        ------
        SolverError
            If the velocity is not finite, or the pressure does not converge.
        """
        solver = self.solver
        try:
            status = solver.step(self.dt or solver.stable_step())
        except SolverError as error:
            raise SolverError(f"{error}: {self.advice()}") from None
        if not status.converged:
            raise SolverError(
                f"step {solver.steps}: the pressure has not converged, |r|/|b| = {status.relative:.2e} after "
                f"{status.iterations:,} iterations ({status.reason}); raise pressure.iterations or pressure.rtol, or "
                "choose another pressure.preconditioner"
            )
        self._last = status.iterations
        self._iterations += status.iterations
        self._measure()
        self._residual = float(np.sqrt(self._total.value / self._volume)) / solver.dt

    def residual(self) -> float:
        """Return the root mean square of ``du/dt`` over the volume, in the last step."""
        return self._residual

    # --------------------------------------------------------------------------------------- results
    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.solver.volumes.cells

    @property
    def _chains(self) -> list[Chain]:
        solver, pressure = self.solver, self.solver.solver
        chains = [solver.before, pressure.start, pressure.body, pressure.end, solver.after, solver.limit, self._measure]
        return [chain for chain in chains if chain is not None]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of the iterations of the pressure those of one."""
        pressure = {id(loop) for chain in (self.solver.solver.body,) for loop in chain.loops}
        kept: list[Loop] = []
        names: set[str] = set()
        for loop in unique(loop for chain in self._chains for loop in chain.loops):
            if id(loop) in pressure and loop.name in names:
                continue
            names.add(loop.name)
            kept.append(loop)
        return kept

    @property
    def pictures(self) -> Sequence[Picture]:
        """Speed and pressure, of a plane flow."""
        if self.solver.dimension != 2:
            return ()
        where = f"{self.name}, time {self.solver.time:.6g}"
        return (
            Picture("speed", f"Speed: {where}", "speed", None, "viridis"),
            Picture("p", f"Pressure: {where}", "kinematic pressure", None, "RdBu_r", 0.0),
        )

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the components of the velocity, its magnitude and the kinematic pressure, each ``(cells,)``."""
        velocity = self.solver.velocity()
        found = {name: velocity[:, k].copy() for k, name in enumerate(_COMPONENTS[: self.solver.dimension])}
        with np.errstate(all="ignore"):
            return found | {"speed": np.linalg.norm(velocity, axis=1), "p": self.solver.pressure()}

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        found: dict[tuple[str, int, str], LoopReport] = {}
        for report in (report for chain in self._chains for report in chain.reports()):
            key = (report.name, report.useful_bytes, report.strategy)
            if (known := found.get(key)) is not None:
                report = replace(report, calls=known.calls + report.calls, seconds=known.seconds + report.seconds)
            found[key] = report
        return list(found.values())

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return time, steps, energy, the imbalance of mass and the iterations of the pressure."""
        state = self.solver.state()
        mean = self._iterations / max(1, state.steps)
        return (
            ("time", f"{state.time:.6g}, the last step {state.dt:.3g}"),
            ("steps", f"{state.steps:,}"),
            ("kinetic energy", f"{state.kinetic_energy:.9g}"),
            ("imbalance", f"{state.imbalance:.2e} at most in a cell"),
            ("pressure", f"{self._last:,} iterations in the last step, {mean:.1f} on average"),
            ("residual", f"{self._residual:.6e} (root mean square of du/dt)"),
        )

    def mesh(self) -> MeshData:
        """Return the mesh."""
        return self._mesh

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.dt:
            return f"lower time.dt (now {self.dt:g}), or set it to 0 for the largest stable step"
        return "give time.dt, a fixed step below those that were chosen"
