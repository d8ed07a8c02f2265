"""Steady compressible flow with known answers: a ramp, Ringleb's flow, a nozzle, between walls, and along a plate."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, radians, sqrt, tan

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import (
    FarField,
    NoSlipWall,
    PressureOutlet,
    SlipWall,
    SupersonicInlet,
    SupersonicOutlet,
    TotalInlet,
)
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.time_schemes import RK2, RK5
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.exact.compressible_exact import Corner
from fluxloom_lab.exact.nozzle import Nozzle
from fluxloom_lab.exact.ringleb import ringleb_place, ringleb_state
from fluxloom_lab.exact.viscous_exact import Couette
from fluxloom_lab.problems.compressible_cases import with_points

__all__ = ["Ramp", "couette", "nozzle", "ramp_mesh", "ringleb", "settle"]

Array = npt.NDArray[np.float64]

_EVERY = 100
"""Steps between two looks at the residual."""


def settle(flow: CompressibleFlow, drop: float, most: int) -> float:
    """Make local steps until the residual is a part of the largest so far; return which part it is.

    Parameters
    ----------
    flow
        What settles.
    drop
        Of the root of the mean square of each component of the residual, over the largest of that component.
    most
        Steps.

    Raises
    ------
    SolverError
        If a state is not finite, or the residual has not fallen so far after all steps.
    """
    largest = np.full(flow.components, 1e-300)
    flow.iterate(1)
    while True:
        norms = flow.residuals().norms
        largest = np.maximum(largest, norms)
        part = float((norms / largest.max()).max())
        if part <= drop:
            return part
        if flow.steps >= most:
            raise SolverError(f"the residual is {part:.1e} of the largest after {most} steps, {drop:g} is wanted")
        flow.iterate(_EVERY)


# ------------------------------------------------------------------------------------------------------- a ramp


def ramp_mesh(angle: float, n: int) -> MeshData:
    """Mesh a channel from -1/4 to 1 whose floor rises from 0 on, with ``n`` quads along a unit; the top is at 1.2."""
    slope, top = tan(radians(angle)), 1.2
    mesh = box2d(round(1.25 * n), round(top * n), (1.25, top), origin=(-0.25, 0.0))
    x, y = mesh.points.T
    floor = np.maximum(x, 0.0) * slope
    return with_points(mesh, np.stack([x, floor + y * (1.0 - floor / top)], axis=1))


@dataclass(frozen=True)
class Ramp:
    """What is found of the shock at a ramp.

    Attributes
    ----------
    angle
        Of the shock to the flow before it, degrees: of the line where the pressure is the mean of both sides.
    pressure
        Mean behind the shock over that before it.
    mach
        Mean behind the shock.
    """

    angle: float
    pressure: float
    mach: float

    @classmethod
    def run(cls, context: Context, mach: float, angle: float, n: int) -> Ramp:
        """Return what is found on `ramp_mesh`."""
        volumes = control_volumes(ramp_mesh(angle, n))
        exact = Corner(mach, angle)
        before = exact.state(np.array([[-1.0, 0.5]]))[0].tolist()
        boundaries = {"xmin": SupersonicInlet(before), "xmax": SupersonicOutlet(), "ymax": SupersonicOutlet(),
                      "ymin": SlipWall()}  # fmt: skip
        flow = CompressibleFlow(context, volumes, boundaries, scheme=CompressibleScheme(time=RK2()))
        flow.start(before)
        settle(flow, 2e-3, 2000)
        return cls.of(flow, exact, round(1.25 * n))

    @classmethod
    def of(cls, flow: CompressibleFlow, exact: Corner, columns: int) -> Ramp:
        """Return what is found in a flow; cells are numbered along the floor first."""
        w, x = flow.states(), flow.volumes.centres[: flow.volumes.cells]
        ray = np.degrees(np.arctan2(x[:, 1], x[:, 0]))
        # half of the sector between floor and shock, away from the corner
        behind = (x[:, 0] > 0.5) & (ray < 0.5 * (exact.angle + exact.shock.angle))
        mach = np.hypot(w[behind, 1], w[behind, 2]) / flow.gas.sound(w[behind])
        level = 0.5 * exact.pressure * (1.0 + exact.shock.pressure)
        places = [
            _crossing(column[:, :2], column[:, 2], level)
            for column in np.column_stack([x, w[:, 3]]).reshape(-1, columns, 3).transpose(1, 0, 2)
            if column[0, 0] > 0.25
        ]
        across = np.array(places)
        line = np.polyfit(across[:, 0], across[:, 1], 1)
        return cls(float(np.degrees(np.arctan(line[0]))), float(w[behind, 3].mean() / exact.pressure),
                   float(mach.mean()))  # fmt: skip


def _crossing(places: Array, values: Array, level: float) -> Array:
    """Return the last place ``(2,)`` on a line of cells at which values fall below a level."""
    last = int(np.flatnonzero(values > level)[-1])
    part = (values[last] - level) / (values[last] - values[last + 1])
    return places[last] + part * (places[last + 1] - places[last])


# ----------------------------------------------------------------------------------------------- Ringleb's flow


def ringleb(context: Context, n: int) -> Array:
    """Return mean errors ``(4,)`` of density, velocity and pressure in Ringleb's flow, up to Mach 1.4.

    The mesh has ``n x n`` quads with straight sides between the streamlines 0.7 and 1.2, from the speed 1/2 to the
    axis, where the flow is fastest; the exact flow is beyond all sides.
    """
    square = box2d(n, n)
    x, y = square.points.T
    streamline = 0.7 + 0.5 * y
    # a line of one speed crosses the axis with the root of the speed's change: that root is what is divided evenly
    points = ringleb_place(np.sqrt(streamline**2 - x**2 * (streamline**2 - 0.25)), streamline)
    volumes = control_volumes(with_points(square, points))
    scheme = CompressibleScheme(limiter=None, time=RK5(), cfl=1.5)
    flow = CompressibleFlow(context, volumes, dict.fromkeys(volumes.patches, FarField(ringleb_state)), scheme=scheme)
    exact = ringleb_state(volumes.centres[: volumes.cells])
    flow.start(exact)
    settle(flow, 1e-5, 20000)
    return np.abs(flow.states() - exact).T @ volumes.volumes / volumes.volumes.sum()


# ------------------------------------------------------------------------------------------------------ a nozzle


def _area(x: Array) -> Array:
    """Return the height of the nozzle: 1 in the throat at 0, 1.1 at both ends."""
    return 1.0 + 0.05 * (1.0 - np.cos(0.2 * pi * np.asarray(x)))


def nozzle(context: Context, columns: int) -> tuple[float, float, float, float]:
    """Return places of the shock in a slender nozzle, found and exact, and pressures before it over the total one.

    The nozzle is 10 long and 1 high, so the flow is nearly one of one dimension. The shock is where the pressure, a
    mean over the height, is the mean of both sides; the other pressure is halfway between throat and shock.
    """
    gas = Gas(constant=1.0)
    exact = Nozzle(_area, -5.0, 0.0, 5.0, 1.0, 1.0, 0.7, gas)
    assert exact.shock is not None
    rows = max(4, columns // 20)
    mesh = box2d(columns, rows, (10.0, 1.0), origin=(-5.0, 0.0))
    x, y = mesh.points.T
    volumes = control_volumes(with_points(mesh, np.stack([x, y * _area(x)], axis=1)))
    boundaries = {"xmin": TotalInlet(1.0, 1.0, (1.0, 0.0)), "xmax": PressureOutlet(exact.pressure),
                  "ymin": SlipWall(), "ymax": SlipWall()}  # fmt: skip
    flow = CompressibleFlow(context, volumes, boundaries, gas, CompressibleScheme(time=RK5(), cfl=1.5))
    places = volumes.centres[: volumes.cells]
    flow.start(exact.state(places))
    settle(flow, 1e-3, 20000)
    pressure = flow.states()[:, 3].reshape(rows, columns).mean(axis=0)
    along = places[:columns, 0]
    sides = exact.state(np.array([[exact.shock - 1e-9, 0.5], [exact.shock + 1e-9, 0.5], [0.5 * exact.shock, 0.5]]))
    level = 0.5 * (sides[0, 3] + sides[1, 3])
    first = int(np.flatnonzero((along > 0.0) & (pressure < level))[-1])
    part = (level - pressure[first]) / (pressure[first + 1] - pressure[first])
    place = float(along[first] + part * (along[first + 1] - along[first]))
    return place, exact.shock, float(np.interp(0.5 * exact.shock, along, pressure)), float(sides[2, 3])


# ----------------------------------------------------------------------------------------------- along walls


def couette(context: Context, n: int, kind: str = "quad") -> tuple[Array, float]:
    """Return errors in Couette's flow with heat, and the heat that leaves through the moving wall over the exact one.

    The Mach number of the moving wall is 1.2, its temperature 1.2 times that of the other; errors are roots of mean
    squares of density, velocity and pressure, ``(4,)``.
    """
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.2))
    exact = Couette(1.2 * sqrt(1.4), 1.0, (1.0, 1.2), 1.0, gas)
    volumes = control_volumes(box2d(2, n, (2.0 / n, 1.0), kind), [("xmin", "xmax")])
    low, high = exact.temperatures
    walls = {"ymin": NoSlipWall(low), "ymax": NoSlipWall(high, (exact.speed, 0.0))}
    flow = CompressibleFlow(context, volumes, walls, gas, CompressibleScheme(limiter=None))
    wanted = exact.state(volumes.centres[: volumes.cells])
    flow.start(wanted)
    settle(flow, 1e-5, 40000)
    errors = np.sqrt(((flow.states() - wanted) ** 2).mean(axis=0))
    return errors, _heat(flow) / _exact_heat(exact)


def _heat(flow: CompressibleFlow) -> float:
    """Return the energy that leaves through the moving wall, per area, less the work of the friction there."""
    flow.before()
    moving = flow.volumes.patches["ymax"]
    flux, w = flow.outflow.read()[moving.start : moving.stop, :4], flow.w.read()[moving.start : moving.stop]
    return float((flux[:, 3] - (flux[:, 1:3] * w[:, 1:3]).sum(axis=1)).mean())


def _exact_heat(exact: Couette) -> float:
    """Return ``-k dT/dy`` at the moving wall: ``k (T_0 - T_1) / h + mu U^2 / (2 h)``."""
    gas, (low, high) = exact.gas, exact.temperatures
    assert isinstance(gas.viscosity, ConstantViscosity)
    conductivity = gas.gamma * gas.constant / (gas.gamma - 1.0) * gas.viscosity.mu / gas.prandtl
    return (conductivity * (low - high) + 0.5 * gas.viscosity.mu * exact.speed**2) / exact.height
