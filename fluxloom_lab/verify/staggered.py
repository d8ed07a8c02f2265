"""The lid-driven cavity on staggered grids, steady: each grid from the one before, extremes on the centre lines."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.incompressible.projection_schemes import Wray
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.solvers.staggered.flow import Staggered
from fluxloom_lab.problems.lid_cavity import BOTELLA_PEYRET, SOURCE, lid_walls
from fluxloom_lab.verify.base import Check, FullOptions, Tell

__all__ = ["StaggeredVerification", "extremes", "refined", "steady_cavity"]

Array = npt.NDArray[np.float64]

_QUICK, _FULL, _FULL_ITEMS = (32, 64), (32, 64, 128), (64, 128, 256, 512)
_ALLOWED = {64: 0.06, 128: 0.016, 512: 0.002}
_RESIDUAL = 1e-6
_LOOK = 50


class StaggeredVerification:
    """Lid-driven cavity at Reynolds number 1000: extremes of the velocity and their order.

    On 64^2 cells; ``--full``: on 128^2, on devices of work items on 512^2.
    """

    title = "staggered: steady lid-driven cavity at Reynolds number 1000 beside Botella and Peyret, order 2"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done.

        Raises
        ------
        CaseError
            On a device that runs no generated code.
        """
        context = options.native_context()
        sides = _QUICK if not options.full else _FULL_ITEMS if context.device.items else _FULL
        here, errors = None, []
        found: dict[str, float] = {}
        for n in sides:
            here = steady_cavity(context, n, here)
            found = extremes(here)
            errors.append(max(abs(found[name] / value - 1.0) for name, value in BOTELLA_PEYRET.items()))
            tell(
                f"{n} x {n}: {here.steps} steps to time {here.time:.4g}, "
                + ", ".join(f"{name} {value:.6f}" for name, value in found.items())
                + f", off by {100 * errors[-1]:.3g} % at most"
            )
        for name, value in BOTELLA_PEYRET.items():
            yield Check(f"cavity {sides[-1]} x {sides[-1]}: {name}", found[name], value, _ALLOWED[sides[-1]], SOURCE)
        if options.full:
            yield Check("cavity: order of the extremes", log2(errors[-2] / errors[-1]), 2.0, 0.1, "h^2")
        assert here is not None
        yield Check("cavity: imbalance of a cell", here.state().imbalance, 0.0, 1e-14, "direct solver of the pressure")


def steady_cavity(context: Context, n: int, start: Staggered | None = None) -> Staggered:
    """Return the steady cavity on ``n x n`` cells, from rest or from the flow on another grid."""
    sides = lid_walls(("xmin", "xmax", "ymin", "ymax"))
    faces = np.arange(n + 1) / n
    flow = Staggered(
        context, StaggeredGrid((faces, faces), (False, False)), 1e-3, sides, scheme=Wray()
    )
    flow.initialise(lambda places: 0.0 * places)
    if start is not None:
        flow.initialise(refined(start, flow.grid))
    flow.every = _LOOK
    while not flow.residual < _RESIDUAL:
        dt = flow.stable_step()
        for _ in range(_LOOK):
            flow.step(dt)
    return flow


def refined(flow: Staggered, grid: StaggeredGrid) -> list[Array]:
    """Return each component of a velocity at its faces of another grid, linearly interpolated."""
    from scipy.interpolate import RegularGridInterpolator

    velocity: list[Array] = []
    for axis, values in enumerate(flow.faces()):
        lines = [line.ravel() for line in reversed(flow.grid.places(axis))]
        interpolate = RegularGridInterpolator(lines, values, bounds_error=False, fill_value=None)  # pyright: ignore[reportArgumentType]
        places = np.stack(np.broadcast_arrays(*reversed(grid.places(axis))), axis=-1)
        velocity.append(np.asarray(interpolate(places)))
    return velocity


def extremes(flow: Staggered) -> dict[str, float]:
    """Return the extremes of cubic splines through the velocity on the centre lines."""
    from scipy.interpolate import CubicSpline

    half = flow.grid.counts[0] // 2
    u, v = flow.faces()
    along, places = [0.0, *flow.grid.centres(1), 1.0], np.linspace(0.0, 1.0, 20001)
    vertical = CubicSpline(along, [0.0, *u[:, half], 1.0])(places)
    across = CubicSpline(along, [0.0, *v[half], 0.0])(places)
    return {"least u": float(vertical.min()), "largest v": float(across.max()), "least v": float(across.min())}
