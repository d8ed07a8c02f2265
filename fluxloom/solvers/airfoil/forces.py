"""Force of the Airfoil flow on its wall: of the pressure in the cells there, as in its scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Inc, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import sqrt
from fluxloom.mesh.generate.airfoil import WALL
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom.solvers.flow_spaces import place_in

__all__ = ["PATCH", "AirfoilForces", "WallForce"]

Array = npt.NDArray[np.float64]

PATCH = "wall"
"""Name of the patch in the mesh."""


@kernel
def wall_sums(
    x: Read, q: Read, bound: Read, load: Write, sums: Inc, *, gm1: float, outside: float, about_x: float, about_y: float
):  # fmt: skip
    """Add ``(p - p_outside) n``, its moment, ``p``, and the length of an edge of the wall.

    ``load`` is the middle of the edge, its normal out of the fluid times its length, and ``p``.
    """
    dx = x[0][0] - x[1][0]
    dy = x[0][1] - x[1][1]
    p = gm1 * (q[3] - 0.5 / q[0] * (q[1] * q[1] + q[2] * q[2]))
    load[0] = 0.5 * (x[0][0] + x[1][0])
    load[1] = 0.5 * (x[0][1] + x[1][1])
    load[2] = dy
    load[3] = -dx
    load[4] = p
    if bound[0] == WALL:
        fx = (p - outside) * dy
        fy = -(p - outside) * dx
        size = sqrt(dx * dx + dy * dy)
        sums[0] += fx
        sums[1] += fy
        sums[2] += (load[0] - about_x) * fy - (load[1] - about_y) * fx
        sums[3] += p * size
        sums[4] += size


@dataclass(frozen=True)
class WallForce:
    """What the flow does to the wall at a moment, for a span of 1.

    Attributes
    ----------
    force : (2,)
        Of the pressure.
    moment
        About the point that was given, across the plane.
    area
        Length of the wall.
    mean_pressure
        Over it.
    """

    force: Array
    moment: float
    area: float
    mean_pressure: float


class AirfoilForces:
    """The force on the wall. Collective.

    Parameters
    ----------
    flow
        Whose.
    about
        Point that the moment is about, ``(2,)``; the origin by default.
    outside
        Pressure that is left out of the force: of no effect on the whole of it, but for round-off.

    Raises
    ------
    SolverError
        If the point does not fit.
    """

    def __init__(self, flow: Airfoil, about: Sequence[float] = (), outside: float = 1.0) -> None:
        self.flow, ctx = flow, flow.context
        x, y, _ = place_in(about, 2)
        real = "float32" if ctx.device.refuses_double else "float64"
        self._sums = ctx.scalar(np.zeros(5), "wall.sums", dtype=real)
        self._load = ctx.dat(flow.bedges, name="wall.load", shape=(5,), dtype=flow.q.scalar.numpy)
        loop = Loop(
            wall_sums, flow.bedges, flow.x[flow.b2n], flow.q[flow.b2c[0]], flow.bound, self._load, self._sums,
            gm1=flow.constants.gamma - 1.0, outside=outside, about_x=x, about_y=y,
        )  # fmt: skip
        self.chain = Chain([Reset(self._sums), loop], name="wall")

    def take(self) -> None:
        """Let the device find the force of now."""
        self.chain()

    def collect(self) -> WallForce:
        """Return what `take` asked for last, ``F = sum (p - p_outside) n A``, and ``sum p A / sum A``.

        Raises
        ------
        SolverError
            If it is not finite.
        """
        sums = np.array(self._sums.value, dtype=np.float64)
        if not np.isfinite(sums).all():
            raise SolverError(f"forces on the wall: not finite in iteration {self.flow.iterations}")
        return WallForce(sums[:2], float(sums[2]), float(sums[4]), float(sums[3] / sums[4]))

    def edges(self) -> tuple[npt.NDArray[np.int64], Array]:
        """Return of the edges of the wall of this rank, behind `take`, their numbers and the values of `wall_sums`."""
        wall = self.flow.bound.read() == WALL
        return self.flow.bedges.numbers[wall], np.asarray(self._load.read(), dtype=np.float64)[wall]
