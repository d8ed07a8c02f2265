"""Flow around a cylinder in a channel: the benchmarks 2D-1 and 2D-2 of Schäfer and Turek."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.cylinder import CylinderChannel, cylinder_channel
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import ForceReference, Forces
from fluxloom.solvers.incompressible.probes import Probes

__all__ = ["CylinderFlow", "Field", "Steady", "Vortices", "mean_period", "steady_limit"]

Array = npt.NDArray[np.float64]

_VISCOSITY = 1e-3
_CHANNEL = CylinderChannel()
_EVERY = 5
_GAP, _FADING, _RECORDED, _STILL = 0.25, 2, 7, 4
"""Time between two records of a flow that gets steady; those left out at first, those kept, those without change."""
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Field:
    """A velocity.

    Attributes
    ----------
    places, velocity : (n, 2)
        Centres of the cells, and what is there.
    """

    places: Array
    velocity: Array

    def at(self, places: Array) -> Array:
        """Return the velocity at other places: linear between three, outside that of the nearest."""
        from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

        found = np.asarray(LinearNDInterpolator(self.places, self.velocity)(places))
        lost = np.isnan(found).any(axis=1)
        found[lost] = NearestNDInterpolator(self.places, self.velocity)(places[lost])
        return found


@dataclass(frozen=True)
class Steady:
    """Coefficients of drag and lift, and the pressure between front and back."""

    drag: float
    lift: float
    difference: float


@dataclass(frozen=True)
class Vortices:
    """Largest coefficients of drag and lift in whole periods, and the Strouhal number."""

    drag: float
    lift: float
    strouhal: float


class CylinderFlow:
    """The benchmark on one mesh.

    Parameters
    ----------
    context
        Where it runs.
    n
        Quads along a quarter of the cylinder.
    reynolds
        Of the mean speed and the diameter: 20 for 2D-1, 100 for 2D-2.
    start
        Where to start; by default the parabola of the inlet.

    References
    ----------
    M. Schäfer, S. Turek: *Benchmark computations of laminar flow around a cylinder*. Notes on Numerical Fluid
    Mechanics 52, Vieweg 1996.
    """

    def __init__(self, context: Context, n: int, reynolds: float, start: Field | None = None) -> None:
        width, height = 2.0 * _CHANNEL.radius, _CHANNEL.height
        mean = reynolds * _VISCOSITY / width

        def parabola(places: Array) -> Array:
            y = places[:, 1]
            return np.stack([6.0 * mean * y * (height - y) / height**2, np.zeros(len(y))], axis=1)

        volumes = control_volumes(cylinder_channel(n, _CHANNEL, behind=2))
        sides = {"xmin": Inflow(parabola), "xmax": Outflow()}
        sides |= dict.fromkeys(("ymin", "ymax", "cylinder"), NoSlip())
        self.flow = Incompressible(
            context, volumes, _VISCOSITY, sides, preconditioner=SmoothedAggregation(), stop=Stop(rtol=1e-5)
        )
        self.flow.initialise(parabola if start is None else start.at)
        self.places, self.width, self.mean = volumes.centres[: volumes.cells], width, mean
        self.forces = Forces(self.flow, "cylinder", ForceReference(mean, width))
        (x, y), radius = _CHANNEL.centre, _CHANNEL.radius
        reach = radius + 1e-3 * radius
        self.probes = Probes(self.flow, {"front": (x - reach, y), "back": (x + reach, y)})

    def run(self, end: float, sample_from: float = np.inf) -> None:
        """Advance to a time, and sample the forces now and then from another one on."""
        flow = self.flow
        while flow.time < end:
            flow.step(flow.stable_step(0.35, 0.4)).require("the pressure round the cylinder")
            if flow.time >= sample_from and flow.steps % _EVERY == 0:
                self.forces.sample()

    def settle(self, change: float = 2e-6, rounds: int = 8) -> float:
        """Advance until the flow is steady, and return the time that this has taken.

        The last to fade are vortices behind the cylinder, by a factor of 6 in a period. So every 2 time units the flow
        goes on from the limit that the velocities of that time point to, see `steady_limit`.

        Parameters
        ----------
        change
            Of drag and lift in a time unit, as a part of the drag, that counts as none: the lift is its 500th part.
        rounds
            Limits at most.

        Raises
        ------
        SolverError
            If the flow does not get steady.
        """
        flow, elapsed = self.flow, 0.0
        for _ in range(rounds):
            records: list[Array] = []
            forces: list[tuple[float, float]] = []
            start = flow.time
            for k in range(_FADING + _RECORDED):
                self.run(start + (k + 1) * _GAP)
                if k < _FADING:
                    continue
                records.append(flow.velocity())
                force = self.forces.now()
                forces.append((force.drag, force.lift))
                late = np.array(forces[-_STILL - 1 :])
                if len(late) > _STILL and np.ptp(late, axis=0).max() <= change * abs(force.drag):
                    return elapsed + flow.time - start
            elapsed += flow.time - start
            limit = steady_limit(records)
            flow.initialise(lambda _places, limit=limit: limit)
        raise SolverError(f"cylinder: drag and lift still change by more than {change:g} after a time of {elapsed:.3g}")

    def field(self) -> Field:
        """Return the velocity now."""
        return Field(self.places, self.flow.velocity())

    def steady(self) -> Steady:
        """Return what 2D-1 asks for."""
        force = self.forces.now()
        self.probes.sample()
        front, back = self.probes.series().pressure[-1]
        return Steady(force.drag, force.lift, float(front - back))

    def vortices(self) -> Vortices:
        """Return what 2D-2 asks for, from the samples, which must have two periods."""
        series = self.forces.series()
        first, last, period = mean_period(series.time, series.lift)
        whole = (series.time >= first) & (series.time <= last)
        strouhal = self.width / (period * self.mean)
        return Vortices(float(series.drag[whole].max()), float(series.lift[whole].max()), strouhal)


def steady_limit(records: Sequence[Array]) -> Array:
    """Return what a sequence of states tends to: reduced rank extrapolation.

    ::

        x = sum g_k x_{k+1},   sum g_k = 1,   |sum g_k (x_{k+1} - x_k)| -> min

    exact for as many linear modes as there are differences less one. All sums over states without divergence are
    without.

    Parameters
    ----------
    records
        States at equal distances in time, at least two, of any one shape.

    References
    ----------
    A. Sidi, W. F. Ford, D. A. Smith: *Acceleration of convergence of vector sequences*. SIAM J. Numer. Anal. 23, 1986.
    """
    states = np.stack([np.ravel(state) for state in records])
    changes = np.diff(states, axis=0)
    products = changes @ changes.T
    size = np.trace(products)
    if size == 0.0:
        return np.array(records[-1])
    weights = np.linalg.solve(products + _ROUNDING * size * np.eye(len(products)), np.ones(len(products)))
    return (weights / weights.sum() @ states[1:]).reshape(np.shape(records[-1]))


def mean_period(time: Array, values: Array) -> tuple[float, float, float]:
    """Return the first and the last time at which values rise through their mean, and the mean time between two.

    Parameters
    ----------
    time, values : (n,)
        A signal of at least one period.
    """
    around = values - 0.5 * (values.min() + values.max())
    k = np.flatnonzero((around[:-1] < 0.0) & (around[1:] >= 0.0))
    passed = time[k] - around[k] * (time[k + 1] - time[k]) / (around[k + 1] - around[k])
    return float(passed[0]), float(passed[-1]), float((passed[-1] - passed[0]) / (passed.size - 1))
