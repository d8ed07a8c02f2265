"""Flows past a cylinder on lattices: the channel of Schäfer and Turek, and a wide box without walls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import (
    Body,
    Outflow,
    Pressure,
    RegularisedCells,
    Slip,
    Velocity,
    VelocityScheme,
    Wall,
)
from fluxloom.lbm.collisions.operators import TRT, Collision
from fluxloom.lbm.immersed import Delta, ImmersedBody, ImmersedBoundary, Peskin, Roma, circle
from fluxloom.lbm.lattices import D2Q9
from fluxloom.lbm.shapes.shapes import Circle
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.problems.cylinder import mean_period

__all__ = [
    "BODY",
    "METHODS",
    "BodyFlow",
    "Box",
    "Method",
    "Shedding",
    "channel_cylinder",
    "free_cylinder",
    "mean_force",
    "method_of",
    "resampled",
    "settle",
    "shed",
    "shedding",
]  # fmt: skip

Array = npt.NDArray[np.float64]

BODY = "body"
"""The name of the body."""


@dataclass(frozen=True)
class Method:
    """How a body acts on the flow.

    Attributes
    ----------
    interpolated
        Whether its wall, if it has one, is where the shape says; otherwise half-way between cells.
    delta
        Of its markers; none: it is solid, with a wall.
    retract
        How far inside of the surface its markers lie, in cells.
    """

    interpolated: bool = False
    delta: Delta | None = None
    retract: float = 0.0


METHODS = {
    "interpolated": Method(interpolated=True),
    "half-way": Method(),
    "immersed": Method(delta=Roma()),
    "retracted": Method(delta=Roma(), retract=0.35),
    "immersed, peskin": Method(delta=Peskin()),
    "retracted, peskin": Method(delta=Peskin(), retract=0.45),
}
"""How a body may act on the flow, by name; why 0.35 and 0.45, says ``docs/theory/lattice_results.md``."""


def method_of(name: str) -> Method:
    """Return a method by its name.

    Raises
    ------
    SolverError
        If there is none of that name.
    """
    if name not in METHODS:
        raise SolverError(f"method {name!r}{did_you_mean(name, METHODS)} (allowed: {', '.join(METHODS)})")
    return METHODS[name]


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

    def begun(self, coarse: BodyFlow) -> BodyFlow:
        """Return this flow after it has got density and velocity of another one, of the same box and speed."""
        shape = self.flow.box.shape
        self.flow.initialise(resampled(coarse.flow.density(), shape), resampled(coarse.flow.velocity(), shape))
        return self

    def coefficients(self) -> Array:
        """Return drag, then the forces across, of the last step."""
        return self.flow.force_on(BODY)[::-1] / self.unit

    def slip(self) -> float:
        """Return the greatest speed that the fluid has at a marker; immersed bodies only."""
        if self.immersed is None:
            raise SolverError(f"{BODY}: it is no immersed body, there are no markers")
        return float(np.linalg.norm(self.immersed.slip(BODY), axis=1).max())


@dataclass(frozen=True)
class Shedding:
    """Mean drag, amplitude of the lift at its frequency, its root mean square times sqrt(2), and Strouhal number."""

    drag: float
    lift: float
    noisy: float
    strouhal: float


def channel_cylinder(
    context: Context, d: int, method: str, dtype: str = "float64", speed: float = 0.02, coarse: BodyFlow | None = None
) -> BodyFlow:
    """Return the benchmark 2D-1 with ``d`` cells in the diameter, which is a multiple of 10.

    The channel is 22 by 4.1 diameters between half-way walls; the Reynolds number is 20. It starts with the parabola
    everywhere, or with the flow on another grid.

    Parameters
    ----------
    method
        One of `METHODS`.
    speed
        Mean, cells a step: two thirds of the largest of the parabola. The density at the inlet is higher than at the
        outlet, by ``4.4 U^2`` here: with 0.04 drag is 1.2 per cent too large for that, with 0.02 0.3.
    coarse
        The flow to start with, of the same speed.
    """
    height, length = round(4.1 * d), 22 * d

    def parabola(positions: Array) -> Array:
        y = (positions[:, 0] + 0.5) / height
        return np.stack([0.0 * y, 6.0 * speed * y * (1.0 - y)], axis=1)

    sides = {"xmin": Velocity(parabola), "xmax": Pressure(1.0), "ymin": Wall(), "ymax": Wall()}
    shape, middle = (height, length), 2.0 * d - 0.5
    case = _past(shape, (middle, middle), d, speed, 20.0, sides, (context, method, dtype), TRT())
    if coarse is not None:
        return case.begun(coarse)
    places = np.stack(np.meshgrid(np.arange(float(height)), np.arange(float(length)), indexing="ij"), axis=-1)
    case.flow.initialise(1.0, parabola(places.reshape(-1, 2)).reshape(height, length, 2))
    return case


def resampled(values: Array, shape: Sequence[int]) -> Array:
    """Return values of cells, maybe several a cell, linearly interpolated at the cells of another grid of a box."""
    for axis, count in enumerate(shape):
        old = values.shape[axis]
        places = (np.arange(count) + 0.5) * old / count - 0.5
        low = np.clip(np.floor(places).astype(np.int64), 0, old - 2)
        share = (places - low).reshape((-1,) + (1,) * (values.ndim - axis - 1))
        values = (1.0 - share) * values.take(low, axis) + share * values.take(low + 1, axis)
    return values


@dataclass(frozen=True)
class Box:
    """A box around a cylinder in a stream.

    Attributes
    ----------
    length, width, front
        Of the box, and from the inlet to the cylinder: in diameters.
    inlet
        A scheme of `Velocity`.
    sides
        ``"slip"``, or ``"velocity"``: that of the stream.
    outlet
        ``"outflow"`` or ``"pressure"``.
    """

    length: float = 40.0
    width: float = 15.0
    front: float = 10.0
    inlet: VelocityScheme = RegularisedCells()
    sides: str = "slip"
    outlet: str = "outflow"


def free_cylinder(
    context: Context, d: int, reynolds: float, method: str, speed: float = 0.08, box: Box = Box(), *,
    dtype: str = "float32", collision: Collision | None = None, coarse: BodyFlow | None = None,
) -> BodyFlow:  # fmt: skip
    """Return a cylinder in a stream, in the middle between two sides; two relaxation times by default.

    It starts with the stream everywhere, or with the flow on another grid.
    """
    stream = (0.0, speed)
    side = Slip() if box.sides == "slip" else Velocity(stream)
    outlet = Outflow() if box.outlet == "outflow" else Pressure(1.0)
    sides = {"xmin": Velocity(stream, scheme=box.inlet), "xmax": outlet, "ymin": side, "ymax": side}
    shape, centre = (round(box.width * d), round(box.length * d)), (0.5 * box.width * d - 0.5, box.front * d - 0.5)
    case = _past(shape, centre, d, speed, reynolds, sides, (context, method, dtype), collision or TRT())
    if coarse is not None:
        return case.begun(coarse)
    y, x = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True)
    start = np.zeros((*shape, 2))
    start[..., 1] = speed
    if reynolds > 47.0:  # symmetric flow is not stable any more: begin with some flow across behind the cylinder
        start[..., 0] = 0.3 * speed * np.exp(-(((y - centre[0]) / d) ** 2) - ((x - centre[1]) / d - 2.0) ** 2)
    case.flow.initialise(1.0, start)
    return case


_SAMPLES, _SMOOTHED = 20, 9
"""Samples of unsteady forces in the time ``D / U``, and of how many means are taken to find periods."""


def _past(
    shape: tuple[int, int], centre: tuple[float, float], d: int, speed: float, reynolds: float,
    sides: dict[str, Any], where: tuple[Context, str, str], collision: Collision,
) -> BodyFlow:  # fmt: skip
    context, name, dtype = where
    method = method_of(name)
    wall = Wall(measure=True, interpolated=method.interpolated)
    bodies = [] if method.delta is not None else [Body(BODY, Circle(centre, d / 2), wall)]
    flow = LatticeBoltzmann(
        context, shape, viscosity=speed * d / reynolds, lattice=D2Q9, collision=collision, dtype=dtype,
        boundaries=sides, bodies=bodies,
    )  # fmt: skip
    immersed = None
    if method.delta is not None:
        markers = circle(centre, d / 2, retract=method.retract)
        immersed = ImmersedBoundary([ImmersedBody(BODY, markers)], delta=method.delta)
        flow.immerse(immersed)
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
        if not np.isfinite(now).all():
            break
        still = still + 1 if np.abs(now - before).max() < change * abs(now[0]) else 0
        if still == _STILL:
            return now
        before = now
    case.flow.check_finite()
    raise SolverError(f"{BODY}: drag and lift still change by more than {change:g} after {case.flow.steps} steps")


def mean_force(case: BodyFlow, start: float, end: float) -> tuple[Array, float]:
    """Return the mean of drag and forces across from one time to another, in ``D / U``, and how much drag drifts.

    In a box without walls sound goes on for long, and two-step means with it: `relax_below` would wait for that.
    """
    every = max(2, round(case.turnover / _SAMPLES))
    case.flow.step(round(start * case.turnover))
    forces: list[Array] = []
    while case.flow.steps < end * case.turnover:
        forces.append(_force(case, every))
    case.flow.check_finite()
    early, late = (np.mean(part, axis=0) for part in np.array_split(np.array(forces), 2))
    return 0.5 * (early + late), float(late[0] / early[0] - 1.0)


def _force(case: BodyFlow, steps: int) -> Array:
    case.flow.step(steps - 1)
    first = case.coefficients()
    case.flow.step(1)
    return 0.5 * (first + case.coefficients())


def shed(case: BodyFlow, start: float = 80.0, end: float = 120.0, tell: Callable[[str], None] = print) -> Shedding:
    """Return what is shed over whole periods from one time to another, in ``D / U``.

    Forces are means over two steps, as in `relax_below`.
    """
    every = max(2, round(case.turnover / _SAMPLES))
    case.flow.step(round(start * case.turnover))
    times: list[float] = []
    forces: list[Array] = []
    while case.flow.steps < end * case.turnover:
        forces.append(_force(case, every))
        times.append((case.flow.steps - 0.5) / case.turnover)
    case.flow.check_finite()
    found, periods = shedding(np.array(times), np.array(forces))
    tell(f"{periods} periods; lift {found.lift:.4f}, by the mean square {found.noisy:.4f}: sound makes them differ")
    return found


def shedding(time: Array, forces: Array) -> tuple[Shedding, int]:
    """Return what is shed over the whole periods of a series, and their number.

    The amplitude of the lift is that of the wave with its period, by least squares. Sound that the start has made,
    of other frequencies, adds to the mean square and to extremes: to these more than half at times.

    Parameters
    ----------
    time : (n,)
        In ``D / U``, evenly spaced.
    forces : (n, 2)
        Coefficients of drag and lift.
    """
    smooth = np.ones(_SMOOTHED) / _SMOOTHED  # sound would make crossings of its own
    first, last, period = mean_period(np.convolve(time, smooth, "valid"), np.convolve(forces[:, 1], smooth, "valid"))
    whole = (time >= first) & (time <= last)
    phase, (drag, lift) = 2.0 * np.pi * time[whole] / period, forces[whole].T
    waves = np.stack([np.ones_like(phase), np.cos(phase), np.sin(phase)], axis=1)
    _, a, b = np.linalg.lstsq(waves, lift, rcond=None)[0]
    noisy = float(np.sqrt(2.0) * lift.std())
    return Shedding(float(drag.mean()), float(np.hypot(a, b)), noisy, 1.0 / period), round((last - first) / period)
