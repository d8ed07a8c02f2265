"""What flows through patches of shallow water."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.shallow.kernels import sum_passed
from fluxloom.run.measures import Loads
from fluxloom.solvers.shallow.flow import ShallowWater

__all__ = ["WaterOpenings"]


class WaterOpenings:
    """Patches of which it is measured what passes them; see `fluxloom.run.measures.Surface`.

    The discharge is that of the discrete equations, m^3/s; means over the length are of depth and surface in the cells
    behind. No forces are measured.

    Raises
    ------
    MeshError
        If there is no such patch.
    """

    def __init__(self, solver: ShallowWater, patches: Sequence[str]) -> None:
        self.patches, self._solver, mesh, ctx = tuple(patches), solver, solver.mesh, solver.context
        chosen = np.zeros(mesh.boundary.size, dtype=np.int32)
        for patch in (mesh.patches[name] for name in patches):
            chosen[patch.indices[: patch.size]] = 1
        edge, kind = mesh.boundary_cell[0], "float32" if ctx.device.refuses_double else "float64"
        load = ctx.dat(mesh.boundary, name="opening.load", shape=(4,), dtype=solver.u.scalar.numpy)
        self._sums = ctx.scalar(np.zeros(4), "opening.sums", dtype=kind)
        loops, self._prepare = solver.passing(load)
        add = Loop(
            sum_passed, mesh.boundary, load, solver.u[edge], solver.zb[edge], solver.geometry.boundary,
            ctx.dat(mesh.boundary, chosen, "opening.chosen"), self._sums,
        )  # fmt: skip
        self._chain = Chain([Reset(self._sums), *loops, add], name="openings")

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._prepare()
        self._chain()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        flow, length, depth, surface = (float(value) for value in self._sums.value)
        none = np.full(2, np.nan)
        return Loads(
            none, none, np.full(3, np.nan), flow, length,
            means={"depth": depth / length, "elevation": surface / length}, turns=False,
        )  # fmt: skip

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: there are no scalars."""
        return {}

    def faces(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """Raise `SolverError`: the faces have no values of their own."""
        raise SolverError("shallow water has no values of faces")
