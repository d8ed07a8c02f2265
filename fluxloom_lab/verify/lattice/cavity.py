"""The lid-driven cavity at Reynolds number 1000 on lattices, steady, and the extremes on its centre lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import Wall
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.lattices import D2Q9
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.verify.lattice.bodies import resampled

__all__ = ["cavity", "cavity_extremes"]

Array = npt.NDArray[np.float64]

_SPEED = 0.1
_STEADY, _LONGEST = 1e-5, 200
"""Change of the velocity, over that of the lid, in a time ``L / U`` that counts as none; most of these times."""


def cavity(
    context: Context, n: int, start: Array | None = None, dtype: str = "float64", steady: float = _STEADY,
    times: int = 0,
) -> tuple[LatticeBoltzmann, Array]:  # fmt: skip
    """Return the steady cavity of ``n`` by ``n`` cells and its velocity ``(n, n, 2)`` over that of the lid.

    Parameters
    ----------
    start
        Velocity on another grid, over that of the lid; from rest by default.
    times
        Times ``L / U`` to run, whether steady or not: storage in few bits gets never as steady as that.

    Raises
    ------
    SolverError
        If it does not get steady.
    """
    walls = {name: Wall() for name in ("xmin", "xmax", "ymin")}
    flow = LatticeBoltzmann(
        context, (n, n), viscosity=_SPEED * n / 1000.0, lattice=D2Q9, collision=TRT(), dtype=dtype,
        boundaries={**walls, "ymax": Wall(velocity=(0.0, _SPEED))},
    )  # fmt: skip
    flow.initialise(1.0, 0.0 if start is None else _SPEED * resampled(start, (n, n)))
    before, turnover = flow.velocity(), 2 * round(n / _SPEED / 2)
    if times:
        flow.step(times * turnover)
        flow.check_finite()
        return flow, np.asarray(flow.velocity(), dtype=np.float64) / _SPEED
    for _ in range(_LONGEST):
        flow.step(turnover)
        now = flow.velocity()
        if np.abs(now - before).max() < steady * _SPEED:
            return flow, np.asarray(now, dtype=np.float64) / _SPEED
        before = now
    flow.check_finite()
    raise SolverError(f"cavity of {n} x {n}: the velocity still changes after {flow.steps} steps")


def cavity_extremes(velocity: Array) -> dict[str, float]:
    """Return the extremes of cubic splines through the velocity on the centre lines, of an even number of cells."""
    from scipy.interpolate import CubicSpline

    n = len(velocity)
    half = n // 2
    along, places = np.array([0.0, *((np.arange(n) + 0.5) / n), 1.0]), np.linspace(0.0, 1.0, 20001)
    u = 0.5 * (velocity[:, half - 1, 1] + velocity[:, half, 1])
    v = 0.5 * (velocity[half - 1, :, 0] + velocity[half, :, 0])
    vertical = np.asarray(CubicSpline(along, [0.0, *u, 1.0])(places))
    across = np.asarray(CubicSpline(along, [0.0, *v, 0.0])(places))
    return {"least u": float(vertical.min()), "largest v": float(across.max()), "least v": float(across.min())}
