"""Flow on edges in time: its order where the mesh stays and the step gets shorter, against a very short one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import NoSlip, Symmetry
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.edges.boundary import EdgePatch
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import Tracked
from fluxloom_lab.exact.taylor_green import plane_vortices
from fluxloom_lab.verify.base import Check, Tell

__all__ = ["IN_TIME", "LID", "SLIP", "WALLS", "FlowInTime", "order_in_time", "orders_of_steps"]

Array = npt.NDArray[np.float64]

IN_TIME = EdgeScheme(dynamic=0.0, subscales=Tracked())
"""The scheme that does not change with the step."""


@dataclass(frozen=True)
class FlowInTime:
    """A plane flow on a square.

    Attributes
    ----------
    kind
        ``"slip"``: decaying vortices between planes, ``"walls"``: between walls, ``"lid"``: what a lid begins.
    side, viscosity, end
        Of the square; of the fluid; time of the comparison.
    """

    kind: Literal["slip", "walls", "lid"]
    side: float
    viscosity: float
    end: float

    def boundaries(self, names: Iterable[str]) -> dict[str, EdgePatch]:
        """Return the boundaries of the patches."""
        found: dict[str, EdgePatch] = {name: Symmetry() if self.kind == "slip" else NoSlip() for name in names}
        return found | {"ymax": NoSlip((1.0, 0.0))} if self.kind == "lid" else found

    def velocity(self, x: Array) -> Array:
        """Return the velocity at the start."""
        if self.kind == "slip":
            return plane_vortices(x)
        s, c = np.sin(np.pi * x), np.sin(2.0 * np.pi * x)
        whirl = np.stack([s[:, 0] ** 2 * c[:, 1], -c[:, 0] * s[:, 1] ** 2], axis=1)
        return whirl if self.kind == "walls" else 0.0 * whirl


SLIP, WALLS, LID = (
    FlowInTime("slip", np.pi, 0.05, 1.0), FlowInTime("walls", 1.0, 0.02, 0.5), FlowInTime("lid", 1.0, 0.02, 0.5),
)  # fmt: skip


def _ended(context: Context, flow: FlowInTime, n: int, steps: int, scheme: EdgeScheme) -> tuple[Array, Array, Array]:
    """Return velocity, pressure of mean 0 and the part of each point in the volume, at the end."""
    mesh = box2d(n, n, (flow.side, flow.side), kind="triangle", perturb=0.1)
    stop = Stop(rtol=1e-11, iterations=5000)
    solver = EdgeFlow(
        point_mesh(context, mesh), flow.viscosity, flow.boundaries(mesh.patches), scheme=scheme, stop=stop
    )  # fmt: skip
    solver.initialise(flow.velocity)
    for _ in range(steps):
        solver.step(flow.end / steps)
    part, pressure = solver.operators.mass.read(), solver.pressure()
    part = part / part.sum()
    return solver.velocity(), pressure - part @ pressure, part


def orders_of_steps(
    context: Context, flow: FlowInTime, counts: tuple[int, ...], finest: int, n: int = 12, scheme: EdgeScheme = IN_TIME
) -> list[tuple[float, float]]:
    """Return the orders of velocity and pressure from each number of steps to the next one, on one mesh.

    Parameters
    ----------
    flow
        Which.
    counts
        Numbers of steps.
    finest
        The number of steps of the flow that others are compared with.
    n
        Intervals a side.
    """
    u, p, part = _ended(context, flow, n, finest, scheme)
    errors: list[tuple[float, float]] = []
    for steps in counts:
        velocity, pressure, _ = _ended(context, flow, n, steps, scheme)
        off = part @ ((velocity - u) ** 2).sum(axis=1), part @ (pressure - p) ** 2
        errors.append((float(np.sqrt(off[0])), float(np.sqrt(off[1]))))
    return [
        (log2(first[0] / second[0]) / log2(more / few), log2(first[1] / second[1]) / log2(more / few))
        for (few, first), (more, second) in pairwise(zip(counts, errors, strict=True))
    ]


def order_in_time(context: Context, tell: Tell) -> Iterator[Check]:
    """Check that errors of time fall with the square of the step where the mesh stays as it is."""
    for flow, what in ((SLIP, "vortices between planes"), (WALLS, "vortices between walls"), (LID, "lid from rest")):
        tell(f"{what}, 12 intervals a side: 32 and 64 steps beside 512")
        ((velocity, pressure),) = orders_of_steps(context, flow, (32, 64), 512)
        for name, order in (("velocity", velocity), ("pressure", pressure)):
            yield Check(f"{what}, mesh fixed: order of the {name} in the step", order, 2.0, 0.1, "512 steps")
