"""A case of flow on edges as it runs: fields at points, the history, and where the time goes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.parts import Part
from fluxloom.fe import edge_flow as kernels
from fluxloom.fe.point_mesh import PointMesh
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_in_time import FlowInTime
from fluxloom.flows.flow_plan import COMPONENTS, StepLengths, flow_pictures
from fluxloom.flows.flow_watch import edge_flow_watch
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.edge_flow import EdgeFlow
from fluxloom.solvers.edge_subscales import TrackedSubscales

__all__ = ["EdgeFlowRun", "FlowOnPoints", "volume_of"]

_GRADIENT = 9


class FlowOnPoints(FlowInTime):
    """A flow whose values are at the points of triangles or tetrahedra."""

    place = "point"
    domain: PointMesh

    @property
    def part(self) -> Part | None:
        """The part of the points that this rank has; None on a rank alone."""
        return self.domain.points.part

    @property
    def cells(self) -> int:
        """Number of triangles or tetrahedra, of all ranks."""
        return self.domain.mesh.cells.total

    @property
    def points(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of points, of all ranks."""
        return self.domain.points.total


class EdgeFlowRun(FlowOnPoints):
    """The solver of flow on edges, ready to advance by steps; see `FlowInTime` for the parameters."""

    curves = (
        *FlowInTime.curves,
        HistoryPanel("decay of energy", ("decay",)),
        HistoryPanel("iterations", ("iterations",)),
    )

    def __init__(self, solver: EdgeFlow, lengths: StepLengths) -> None:
        self.solver, self.domain, mass = solver, solver.mesh, solver.operators.mass
        super().__init__(solver, Change(solver.u, mass, volume_of(mass)), lengths)
        gradient = solver.context.dat(solver.loops.points, name="gradient", shape=(_GRADIENT,))
        loop = solver.loops.gather(kernels.velocity_gradient, *solver.loops.both(solver.u), mass, gradient)
        self._gradient, self._curl = gradient, Chain([loop], name="gradient")
        self._lost = False

    def _take(self, start: Start) -> None:
        """Take the velocity of another result.

        From a checkpoint on the same mesh with the same boundaries, velocity and pressure, and subscales that are
        tracked, are taken as they are. Else the velocity is linear, and made free of divergence; the pressure is that
        of a start (`fluxloom.solvers.edge_flow.EdgeFlow.initialise`).
        """
        solver, loops = self.solver, self.solver.loops
        dats = {"u": loops.u, "p": loops.p, "hat": loops.hat, "slope": loops.slope, "sums": loops.sums}
        if isinstance(tracked := loops.subscales, TrackedSubscales):
            dats |= {"subscales.s": tracked.s, "subscales.rate": tracked.rate}
        dats = {f"run.flow.solver.loops.{name}": dat for name, dat in dats.items()}
        if start.held(dats, "mesh", "boundary"):
            solver.take()
        else:
            values = start.velocity(loops.places)
            solver.initialise(lambda _: values).require("the pressure of the start")

    # ------------------------------------------------------------------------------------- advance
    def _largest_step(self) -> float:
        dt = self.solver.stable_step(self.lengths.courant)
        if not math.isfinite(dt):
            raise SolverError("time.dt: a fluid at rest without viscosity has no largest stable step: give dt")
        return dt

    def failed(self) -> None:
        """Let the fields show the velocity of the step that failed, if it is lost."""
        finite = np.isfinite(self.solver.loops.hat.read()).all()
        self._lost = any(self.solver.context.comm.allgather(not finite))

    @property
    def _tolerance(self) -> float:
        return self.solver.stop.rtol

    def columns(self) -> dict[str, float]:
        """Return time, energy, its decay, the imbalance of mass, and the iterations of the pressure."""
        state = self.solver.state()
        decay, left = self._decay(state.time, state.kinetic_energy), state.imbalance if state.steps else math.nan
        return {
            "time": state.time, "kinetic_energy": state.kinetic_energy, "decay": decay, "imbalance": left,
            "iterations": float(self._last),
        }  # fmt: skip

    # --------------------------------------------------------------------------------------- results
    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        parts = (self.solver.loops.momentum, self.solver.loops.fill, self.solver.loops.correction)
        return [chain for chain in self.solver.chains if not any(chain is part for part in parts)]

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [*self.solver.chains, self.solver.loops.limit, self._change.chain]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return speed, vorticity and pressure."""
        return flow_pictures(name, self.solver.time)

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, pressure, vorticity and, of a model, eddy viscosity, ``(n,)`` each.

        Of a flow in three dimensions the vorticity is its magnitude. Of a step that failed the velocity is that of the
        momentum.
        """
        solver, loops = self.solver, self.solver.loops
        velocity = loops.hat.read() if self._lost else solver.velocity()
        found = {name: velocity[:, k].copy() for k, name in enumerate(COMPONENTS[: solver.dimension])}
        with np.errstate(all="ignore"):
            found |= {"speed": np.linalg.norm(velocity, axis=1), "p": solver.pressure()}
            found["vorticity"] = self._vorticity()
        if loops.model is not None:
            found["nu_t"] = loops.nu.read() - loops.laminar.read()
        return found

    def _vorticity(self) -> npt.NDArray[np.float64]:
        """Return the vorticity of the points, its magnitude in space."""
        self._curl()
        g = self._gradient.read().reshape(-1, 3, 3)
        z = g[:, 1, 0] - g[:, 0, 1]
        if self.solver.dimension == 2:
            return z
        return np.sqrt((g[:, 2, 1] - g[:, 1, 2]) ** 2 + (g[:, 0, 2] - g[:, 2, 0]) ** 2 + z**2)

    def _rows(self) -> Sequence[tuple[str, str]]:
        loops = self.solver.loops
        parts = {
            "momentum": [loops.momentum],
            "fill": [loops.fill],
            "pressure": self._pressure_chains,
            "correction": [loops.correction],
        }
        seconds = {
            name: sum((report.seconds for chain in chains for report in chain.reports()), 0.0)
            for name, chains in parts.items()
        }
        seconds["pressure"] += self.solver.spent
        whole, text = sum(seconds.values()), "not timed on this device; add --profile"
        if whole:
            text = ", ".join(f"{name} {part:.3f} s ({100 * part / whole:.1f} %)" for name, part in seconds.items())
        there, back = self._copies()
        copies = f"in {1e3 * there:.3f} ms, out {1e3 * back:.3f} ms for velocity and pressure; none in a step"
        return (("split", text), ("copies", copies))

    def _copies(self) -> tuple[float, float]:
        """Return the seconds that velocity and pressure take to the device and back."""
        device, dats = self.solver.context.device, (self.solver.u, self.solver.p)
        device.synchronize()
        begin = time.perf_counter()
        values = [dat.read() for dat in dats]
        middle = time.perf_counter()
        for dat, value in zip(dats, values, strict=True):
            dat.write(value)
            dat.buffer.device()
        device.synchronize()
        return time.perf_counter() - middle, middle - begin

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return edge_flow_watch(self.solver, self.lengths, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant, or give time.dt, a fixed step below those that were chosen"


def volume_of(mass: Dat) -> float:
    """Return the sum of the lumped masses of all ranks. Collective."""
    return float(mass.set.context.comm.reduce(np.array([mass.read().sum()]), "sum")[0])
