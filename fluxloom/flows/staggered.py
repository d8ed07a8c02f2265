"""A case of flow on a staggered grid as it runs: steps, history, fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.chain import Chain
from fluxloom.flows.flow_in_time import FlowInTime
from fluxloom.flows.flow_plan import COMPONENTS, StepLengths, flow_pictures
from fluxloom.flows.flow_watch import staggered_watch
from fluxloom.fv.staggered_grid import StaggeredGrid
from fluxloom.fv.staggered_transfer import between_faces, same_box
from fluxloom.mesh.generate import box2d, box3d
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.staggered import Staggered

__all__ = ["StaggeredRun"]


class _Residual:
    """What the solver measures by itself, now and then."""

    def __init__(self, solver: Staggered) -> None:
        self._solver = solver

    @property
    def chain(self) -> Chain:
        """What measures: the last part of a step."""
        return self._solver.stages[-1].looking

    def begin(self) -> None:
        """Nothing is kept here."""

    def measured(self, dt: float) -> float:
        """Return the root mean square of ``du/dt``, when it was last measured."""
        return self._solver.residual


class StaggeredRun(FlowInTime):
    """The solver of flow on a staggered grid, ready to advance by steps.

    Parameters
    ----------
    solver
        In its initial state.
    lengths
        Of the steps.
    """

    curves = (
        *FlowInTime.curves,
        HistoryPanel("bulk velocity", ("bulk_u", "bulk_v")),
        HistoryPanel("residual", ("residual",), logarithmic=True),
    )

    remembers = (*FlowInTime.remembers, "_stable")

    def __init__(self, solver: Staggered, lengths: StepLengths) -> None:
        self.solver = solver
        super().__init__(solver, _Residual(solver), lengths)
        self._stable = 0.0

    def mesh(self) -> MeshData:
        """Return the cells as quads or hexahedra."""
        faces, counts = self.solver.grid.faces, self.solver.grid.counts
        lengths = [float(f[-1] - f[0]) for f in faces]
        origin = [float(f[0]) for f in faces]
        if self.solver.dimension == 2:
            return box2d(counts[0], counts[1], lengths, origin=origin, axes=faces)
        return box3d(counts[0], counts[1], counts[2], lengths, origin=origin, axes=faces)

    def _take(self, start: Start) -> None:
        """Take the velocity of another result, linear, and made free of divergence.

        From a checkpoint of a staggered grid of the same box the velocity is that at its faces: on the same grid the
        velocity is the same but for round-off.
        """
        solver, grid = self.solver, self.solver.grid
        places = [np.broadcast_arrays(*grid.places(a)) for a in range(grid.dimension)]
        at = [np.stack([line.ravel() for line in lines], axis=1) for lines in places]
        found = self._between_faces(start)
        if found is None:
            found = [start.velocity(at[a])[:, a].reshape(lines[0].shape) for a, lines in enumerate(places)]
        else:
            found = [v + start.noise(at[a])[:, a].reshape(v.shape) for a, v in enumerate(found)]
        solver.initialise(found)

    def _between_faces(self, start: Start) -> list[npt.NDArray[np.float64]] | None:
        """Return the velocity of a checkpoint of a grid of the same box; None: it is of something else."""
        kept = start.kept(("run.flow.solver.box", "run.flow.solver.fields.u"))
        if kept is None:
            return None
        box, values = kept.values()
        other = StaggeredGrid(tuple(np.asarray(line) for line in box["faces"]), tuple(box["periodic"]))
        if not same_box(self.solver.grid, other):
            return None
        try:
            return between_faces(other, values.reshape(*other.full_shape, other.dimension), self.solver.grid)
        except SolverError as error:
            raise SolverError(f"{start.path}: {error}") from None

    # ------------------------------------------------------------------------------------- advance
    def _largest_step(self) -> float:
        steps, every = self.solver.steps, self.solver.every
        if not self._stable or steps < every or steps % every == 0:  # the first steps find the speed of the flow
            self._stable = self.solver.stable_step(self.lengths.courant, self.lengths.diffusion)
        return self._stable

    # --------------------------------------------------------------------------------------- results
    def columns(self) -> dict[str, float]:
        """Return time, energy, imbalance, bulk velocity and force."""
        state = self.solver.state()
        found = {"time": state.time, "kinetic_energy": state.kinetic_energy, "imbalance": state.imbalance}
        bulk = state.momentum / self.solver.grid.volume
        found |= {f"bulk_{name}": float(value) for name, value in zip(COMPONENTS, bulk, strict=False)}
        force = self.solver.acting_force()
        found |= {f"force_{'xyz'[k]}": float(value) for k, value in enumerate(force)}
        return found | {"residual": self.solver.residual}

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.solver.grid.cells

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return self.solver.chains

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return speed, vorticity and pressure."""
        return flow_pictures(name, self.solver.time)

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, kinematic pressure and vorticity of cells, ``(cells,)`` each.

        Of a flow in three dimensions the vorticity is its magnitude.
        """
        velocity = self.solver.velocity()
        found = {name: velocity[:, k].copy() for k, name in enumerate(COMPONENTS[: self.solver.dimension])}
        with np.errstate(all="ignore"):
            found |= {"speed": np.linalg.norm(velocity, axis=1), "p": self.solver.pressure()}
            found["vorticity"] = self.solver.fields.vorticity().ravel()
        return found

    def _sums(self) -> Sequence[tuple[str, str]]:
        state = self.solver.state()
        bulk = ", ".join(f"{value:.7g}" for value in state.momentum / self.solver.grid.volume)
        return (
            ("kinetic energy", f"{state.kinetic_energy:.9g}"),
            ("bulk velocity", bulk),
            ("imbalance", f"{state.imbalance:.2e} at most in a cell"),
        )

    def _rows(self) -> Sequence[tuple[str, str]]:
        solver = self.solver
        force = ", ".join(f"{value:.6g}" for value in solver.acting_force())
        rows = [("force", force)] if solver.acting_force().any() else []
        loops = sum(report.seconds for chain in solver.chains for report in chain.reports())
        pressure = sum(solver.pressure_seconds.values())
        text = "not timed on this device; add --profile"
        if loops and pressure:
            share = 100.0 * pressure / (loops + pressure)
            text = f"loops {loops:.3f} s, pressure {pressure:.3f} s ({share:.1f} %)"
        return [*rows, ("split", text), ("pressure", solver.plan.describe().splitlines()[0])]

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return staggered_watch(self.solver, self.lengths, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant and time.diffusion, or give time.dt, a fixed step below those that were chosen"
