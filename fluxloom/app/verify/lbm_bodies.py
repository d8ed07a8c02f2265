"""Flows past a cylinder on lattices: the channel of Schäfer and Turek, and a wide box without walls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.verify.cylinder import mean_period
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import Body, Outflow, Pressure, Slip, Velocity, Wall
from fluxloom.lbm.collisions import TRT
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary, circle
from fluxloom.lbm.lattices import D2Q9
from fluxloom.lbm.shapes import Circle
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["METHODS", "BodyFlow", "Shedding", "channel_cylinder", "free_cylinder", "settle", "shed"]

Array = npt.NDArray[np.float64]

METHODS = ("interpolated", "half-way", "immersed")
"""How a body may act on the flow."""

_NAME = "body"
_STEADY, _STILL, _LONGEST = 1e-5, 5, 400
"""Change of the drag in the time ``D / U`` that counts as none, as a share of it; how often; most of these times."""


@dataclass(frozen=True, eq=False)
class BodyFlow:
    """A flow past a body.

    Attributes
    ----------
    flow
        The solver.
    unit
        Force of a coefficient of one: ``U^2 A / 2``.
    turnover
        Steps in the time ``D / U``.
    immersed
        The immersed boundary, if the body is one.
    """

    flow: LatticeBoltzmann
    unit: float
    turnover: float
    immersed: ImmersedBoundary | None = None

    def coefficients(self) -> Array:
        """Return drag, then the forces across, of the last step."""
        return self.flow.force_on(_NAME)[::-1] / self.unit

    def slip(self) -> float:
        """Return the greatest speed that the fluid has at a marker; immersed bodies only."""
        if self.immersed is None:
            raise SolverError(f"{_NAME}: it is no immersed body, there are no markers")
        return float(np.linalg.norm(self.immersed.slip(_NAME), axis=1).max())


@dataclass(frozen=True)
class Shedding:
    """Mean drag, amplitude of the lift, and Strouhal number."""

    drag: float
    lift: float
    strouhal: float


def channel_cylinder(context: Context, d: int, method: str, dtype: str = "float64", speed: float = 0.04) -> BodyFlow:
    """Return the benchmark 2D-1 at rest, with ``d`` cells in the diameter, which is a multiple of 10.

    The channel is 22 by 4.1 diameters between half-way walls; the Reynolds number is 20.

    Parameters
    ----------
    method
        One of `METHODS`.
    speed
        Mean, cells a step: two thirds of the largest of the parabola.
    """
    height, length = round(4.1 * d), 22 * d

    def parabola(positions: Array) -> Array:
        y = (positions[:, 0] + 0.5) / height
        return np.stack([0.0 * y, 6.0 * speed * y * (1.0 - y)], axis=1)

    sides = {"xmin": Velocity(parabola), "xmax": Pressure(1.0), "ymin": Wall(), "ymax": Wall()}
    return _past((height, length), (2.0 * d - 0.5, 2.0 * d - 0.5), d, speed, 20.0, sides, (context, method, dtype))


def free_cylinder(
    context: Context, d: int, reynolds: float, method: str, dtype: str = "float64", speed: float = 0.1
) -> BodyFlow:
    """Return a cylinder in a stream, in a box of 40 by 15 diameters with sides that slip, 10 from the inlet."""
    sides = {"xmin": Velocity((0.0, speed)), "xmax": Outflow(), "ymin": Slip(), "ymax": Slip()}
    shape, centre = (15 * d, 40 * d), (7.5 * d - 0.5, 10.0 * d - 0.5)
    case = _past(shape, centre, d, speed, reynolds, sides, (context, method, dtype))
    y, x = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True)
    start = np.zeros((*shape, 2))
    start[..., 1] = speed
    if reynolds > 47.0:  # symmetric flow is not stable any more: begin with some flow across behind the cylinder
        start[..., 0] = 0.3 * speed * np.exp(-(((y - centre[0]) / d) ** 2) - ((x - centre[1]) / d - 2.0) ** 2)
    case.flow.initialise(1.0, start)
    return case


_SAMPLES, _SMOOTHED = 20, 9
"""Samples of unsteady forces in the time ``D / U``, and of how many means are taken: 1 % off a lift."""


def _past(
    shape: tuple[int, int], centre: tuple[float, float], d: int, speed: float, reynolds: float,
    sides: dict[str, Any], where: tuple[Context, str, str],
) -> BodyFlow:  # fmt: skip
    context, method, dtype = where
    if method not in METHODS:
        raise SolverError(f"method {method!r} (allowed: {', '.join(METHODS)})")
    wall = Wall(measure=True, interpolated=method == "interpolated")
    bodies = [] if method == "immersed" else [Body(_NAME, Circle(centre, d / 2), wall)]
    flow = LatticeBoltzmann(
        context, shape, viscosity=speed * d / reynolds, lattice=D2Q9, collision=TRT(), dtype=dtype,
        boundaries=sides, bodies=bodies,
    )  # fmt: skip
    immersed = ImmersedBoundary([ImmersedBody(_NAME, circle(centre, d / 2))]) if method == "immersed" else None
    if immersed is not None:
        flow.immerse(immersed)
    flow.initialise()
    return BodyFlow(flow, 0.5 * speed**2 * d, d / speed, immersed)


def settle(case: BodyFlow, change: float = _STEADY) -> Array:
    """Advance until drag and lift change by less than a share of the drag in the time ``D / U``; return them.

    Forces are means over two steps: what is left of sound changes its sign.

    Raises
    ------
    SolverError
        If the flow does not get steady.
    """
    steps = 2 * round(case.turnover / 2)
    before, still = _force(case, steps), 0
    for _ in range(_LONGEST):
        now = _force(case, steps)
        still = still + 1 if np.abs(now - before).max() < change * abs(now[0]) else 0
        if still == _STILL:
            return now
        before = now
    case.flow.check_finite()
    raise SolverError(f"{_NAME}: drag and lift still change by more than {change:g} after {case.flow.steps} steps")


def _force(case: BodyFlow, steps: int) -> Array:
    case.flow.step(steps - 1)
    first = case.coefficients()
    case.flow.step(1)
    return 0.5 * (first + case.coefficients())


def shed(case: BodyFlow, start: float = 100.0, end: float = 140.0, tell: Callable[[str], None] = print) -> Shedding:
    """Return mean and amplitude over whole periods from one time to another, in ``D / U``."""
    flow, every = case.flow, max(1, round(case.turnover / _SAMPLES))
    flow.step(round(start * case.turnover))
    steps: list[int] = []
    forces: list[Array] = []
    while flow.steps < end * case.turnover:
        flow.step(every)
        steps.append(flow.steps)
        forces.append(case.coefficients())
    flow.check_finite()
    smooth = np.ones(_SMOOTHED) / _SMOOTHED  # sound would make crossings of its own, and peaks
    series = (np.array(steps) / case.turnover, *np.array(forces).T)
    time, drag, lift = (np.convolve(values, smooth, "valid") for values in series)
    first, last, period = mean_period(time, lift)
    whole = (time >= first) & (time <= last)
    tell(f"{(last - first) / period:.0f} periods; lift {lift[whole].min():.4f} to {lift[whole].max():.4f}")
    # that of the wave with the same root mean square: the ends of a noisy series say how noisy it is
    return Shedding(float(drag[whole].mean()), float(np.sqrt(2.0) * lift[whole].std()), 1.0 / period)
