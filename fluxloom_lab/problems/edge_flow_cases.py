"""Small flows on edges with known answers: made ones, Kovasznay's, decaying vortices, a channel, cavities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import Diagonal, box2d, box3d, clustered
from fluxloom.solvers.edges.boundary import EdgePatch
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom_lab.exact.taylor_green import plane_vortices
from fluxloom_lab.problems.lid_cavity import lid_walls

__all__ = [
    "FlowError",
    "channel",
    "edge_cavity",
    "energy_of_cavity",
    "energy_of_decay",
    "kovasznay",
    "made_flow",
    "peak",
    "slip_vortices",
    "steady",
]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlowError:
    """Root mean squares over the volume of what velocity and pressure are off, and what continuity has left, 1/s."""

    velocity: float
    pressure: float
    imbalance: float


def errors(flow: EdgeFlow, velocity: Array, pressure: Array) -> FlowError:
    """Return the errors of a flow; the mean of the pressure does not count."""
    mass = flow.operators.mass.read() / flow.operators.mass.read().sum()
    off = flow.pressure() - pressure
    off = off - mass @ off
    square = mass @ ((flow.velocity() - velocity) ** 2).sum(axis=1)
    return FlowError(float(np.sqrt(square)), float(np.sqrt(mass @ off**2)), flow.state().imbalance)


def steady(flow: EdgeFlow, still: float, courant: float = 0.8, most: float = 100.0, largest: float = np.inf) -> None:
    """Take steps until no velocity changes faster than ``still``; none longer than ``largest``.

    Raises
    ------
    SolverError
        If that is not so at the time ``most``.
    """
    while True:
        dt, before, start = min(flow.stable_step(courant), largest), flow.velocity(), flow.time
        for _ in range(50):
            flow.step(dt)
        if np.abs(flow.velocity() - before).max() < still * (flow.time - start):
            return
        if flow.time > most:
            raise SolverError(f"the flow is not steady at time {flow.time:g}")


# ------------------------------------------------------------------------------------------- made flows
def _wave(x: Array, order: int) -> Array:
    """Return a derivative of ``sin^2 pi x``."""
    k = 2.0 * np.pi
    return [np.sin(np.pi * x) ** 2, 0.5 * k * np.sin(k * x), 0.5 * k**2 * np.cos(k * x), -0.5 * k**3 * np.sin(k * x)][
        order
    ]


class MadeFlow:
    """``u = curl psi / pi`` of ``psi = sin^2 pi x sin^2 pi y [sin^2 pi z]`` along z, ``p`` a product of cosines."""

    def __init__(self, dimension: int, nu: float) -> None:
        self.dimension, self.nu = dimension, nu

    def part(self, x: Array, *orders: int) -> Array:
        """Return a derivative of ``psi / pi``."""
        factors = [_wave(x[:, a], order) for a, order in enumerate(orders[: self.dimension])]
        return np.prod(factors, axis=0) / np.pi

    def velocity(self, x: Array) -> Array:
        """Return ``u``; 0 at the boundary."""
        u = np.zeros_like(x)
        u[:, 0], u[:, 1] = self.part(x, 0, 1, 0), -self.part(x, 1, 0, 0)
        return u

    def pressure(self, x: Array) -> Array:
        """Return ``p``, of mean 0."""
        return np.cos(np.pi * x).prod(axis=1)

    def force(self, x: Array) -> Array:
        """Return ``(u . grad) u - nu laplace u + grad p``."""
        u, b = self.velocity(x), np.zeros_like(x)
        for a in range(self.dimension):
            once, twice = [0, 0, 0], [0, 0, 0]
            once[a], twice[a] = 1, 2
            gradient = (self._shifted(x, (0, 1, 0), once), -self._shifted(x, (1, 0, 0), once))
            bend = (self._shifted(x, (0, 1, 0), twice), -self._shifted(x, (1, 0, 0), twice))
            for k in range(2):
                b[:, k] += u[:, a] * gradient[k] - self.nu * bend[k]
            slope = np.cos(np.pi * x)
            slope[:, a] = -np.pi * np.sin(np.pi * x[:, a])
            b[:, a] += slope.prod(axis=1)
        return b

    def _shifted(self, x: Array, orders: tuple[int, int, int], more: list[int]) -> Array:
        return self.part(x, *(a + b for a, b in zip(orders, more, strict=True)))


def made_flow(context: Context, dimension: int, n: int, nu: float = 0.05) -> FlowError:
    """Return the errors of a steady flow that a force drives between walls, on triangles or tetrahedra."""
    mesh = _box(dimension, n, 1.0, 0.1)
    made = MadeFlow(dimension, nu)
    flow = EdgeFlow(
        point_mesh(context, mesh), nu, dict.fromkeys(mesh.patches, NoSlip()), force=made.force, stop=Stop(rtol=1e-4)
    )
    flow.initialise(made.velocity)
    steady(flow, 1e-4)
    return errors(flow, made.velocity(mesh.points), made.pressure(mesh.points))


def kovasznay(context: Context, n: int, reynolds: float = 40.0, scheme: EdgeScheme | None = None) -> FlowError:
    """Return the errors of the flow behind a grid, its velocity given all round the unit square.

    L. I. G. Kovasznay, Mathematical Proceedings of the Cambridge Philosophical Society 44 (1948) 58-62.
    """
    mesh = box2d(n, n, kind="triangle", origin=(-0.5, -0.5), perturb=0.1)
    decay, k = reynolds / 2.0 - np.sqrt(reynolds**2 / 4.0 + 4.0 * np.pi**2), 2.0 * np.pi

    def velocity(x: Array) -> Array:
        wake = np.exp(decay * x[:, 0])
        return np.stack([1.0 - wake * np.cos(k * x[:, 1]), decay / k * wake * np.sin(k * x[:, 1])], axis=1)

    sides: dict[str, EdgePatch] = dict.fromkeys(mesh.patches, Inflow(velocity))
    flow = EdgeFlow(point_mesh(context, mesh), 1.0 / reynolds, sides, scheme=scheme, stop=Stop(rtol=1e-4))
    flow.initialise(velocity)
    steady(flow, 1e-4)
    return errors(flow, velocity(mesh.points), -0.5 * np.exp(2.0 * decay * mesh.points[:, 0]))


def slip_vortices(
    context: Context, n: int, steps: int, scheme: EdgeScheme | None = None, time: float = 1.0
) -> tuple[EdgeFlow, FlowError]:
    """Return Taylor's vortices ``(sin x cos y, -cos x sin y) exp(-2 nu t)`` between planes, and their errors."""
    nu, mesh = 0.05, _box(2, n, np.pi, 0.1)
    x, y = mesh.points.T
    sides: dict[str, EdgePatch] = dict.fromkeys(mesh.patches, Symmetry())
    flow = EdgeFlow(point_mesh(context, mesh), nu, sides, scheme=scheme, stop=Stop(rtol=1e-10))
    flow.initialise(plane_vortices)
    for _ in range(steps):
        flow.step(time / steps)
    pressure = 0.25 * (np.cos(2.0 * x) + np.cos(2.0 * y)) * np.exp(-4.0 * nu * time)
    return flow, errors(flow, plane_vortices(mesh.points) * np.exp(-2.0 * nu * time), pressure)


def channel(context: Context, n: int) -> tuple[EdgeFlow, FlowError]:
    """Return the flow ``u = 4 y (1 - y)`` from an inflow to an outflow, ``nu = 0.1``, length 2, and its errors."""
    nu, mesh = 0.1, box2d(2 * n, n, (2.0, 1.0), kind="triangle", diagonal="right")

    def velocity(x: Array) -> Array:
        return np.stack([4.0 * x[:, 1] * (1.0 - x[:, 1]), 0.0 * x[:, 0]], axis=1)

    sides = {"xmin": Inflow(velocity), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}
    flow = EdgeFlow(point_mesh(context, mesh), nu, sides, stop=Stop(rtol=1e-8))
    flow.initialise(velocity)
    steady(flow, 1e-5)
    return flow, errors(flow, velocity(mesh.points), 8.0 * nu * (2.0 - mesh.points[:, 0]))


# ------------------------------------------------------------------------------------------- cavities
def _box(dimension: int, n: int, length: float, perturb: float) -> MeshData:
    if dimension == 2:
        return box2d(n, n, (length,) * 2, kind="triangle", perturb=perturb)
    return box3d(n, n, n, (length,) * 3, kind="tetra", perturb=perturb)


def edge_cavity(
    context: Context,
    n: int,
    reynolds: float,
    strength: float = 1.0,
    still: float = 1e-4,
    diagonal: Diagonal = "alternating",
) -> tuple[EdgeFlow, Array, Array]:
    """Return the steady flow under a lid of speed 1 on triangles that are finer at the walls, and its centrelines.

    Parameters
    ----------
    context
        Where it runs.
    n
        Intervals a side, even.
    reynolds
        1 over the viscosity.
    strength
        Of `fluxloom.mesh.generate.boxes.clustered`.
    still
        Fastest change of the velocity that counts as none.
    diagonal
        Of `fluxloom.mesh.generate.boxes.box2d`. With alternating ones points have four or eight neighbours, and what
        they are off alternates too.

    Returns
    -------
    EdgeFlow
        The flow.
    (n + 1, 2)
        ``y`` and ``u`` at ``x = 1/2``.
    (n + 1, 2)
        ``x`` and ``v`` at ``y = 1/2``.

    Raises
    ------
    SolverError
        If the flow does not get steady.
    """
    mesh = box2d(n, n, kind="triangle", diagonal=diagonal, axes=(clustered(strength),) * 2)
    flow = EdgeFlow(
        point_mesh(context, mesh), 1.0 / reynolds, lid_walls(mesh.patches), preconditioner=SmoothedAggregation(),
        stop=Stop(rtol=1e-4),
    )  # fmt: skip
    flow.initialise()
    flow.step(0.1 / n)
    steady(flow, still, most=200.0, largest=1.0 / n)
    u, x = flow.velocity(), mesh.points
    upright, level = (np.flatnonzero(np.abs(x[:, a] - 0.5) < 1e-9) for a in (0, 1))
    return flow, np.stack([x[upright, 1], u[upright, 0]], 1), np.stack([x[level, 0], u[level, 1]], 1)


def peak(line: Array, sign: float) -> float:
    """Return the largest (``sign`` 1) or least (-1) value of the cubic spline through places and values ``(m, 2)``.

    Next to the extreme value: a parabola through three values is off by more than the flow where they are far apart.
    """
    from scipy.interpolate import CubicSpline

    k = int(np.argmax(sign * line[:, 1]))
    spline = CubicSpline(*line.T)
    flat = np.asarray(spline.derivative().roots(extrapolate=False))
    near = flat[np.abs(flat - line[k, 0]) < np.diff(line[max(k - 1, 0) : k + 2, 0]).max()]
    return float(sign * max(sign * line[k, 1], (sign * spline(near)).max(initial=-np.inf)))


def energy_of_cavity(context: Context, n: int = 16, time: float = 20.0) -> tuple[float, float]:
    """Return the largest gain of energy over the work of the lid, and the largest energy, at the Reynolds number 1e5.

    The first from a time of 1 on: the pressure, 0 at the start, takes some steps to what the flow asks. All of the
    fluid as fast as the lid would have an energy of 1/2.
    """
    mesh = box2d(n, n, kind="triangle", perturb=0.2)
    flow = EdgeFlow(point_mesh(context, mesh), 1e-5, lid_walls(mesh.patches, mesh.dimension), stop=Stop(rtol=1e-6))
    flow.initialise()
    start = flow.state().kinetic_energy
    work, excess, most = 0.0, -np.inf, start
    dt = 0.4 / n
    while flow.time < time:
        flow.step(dt)
        work -= dt * float(flow.force("ymax")[0])
        energy = flow.state().kinetic_energy
        most = max(most, energy)
        if flow.time >= 1.0:
            excess = max(excess, (energy - start) / work)
    return excess, most


def energy_of_decay(context: Context, n: int = 16, steps: int = 200) -> Array:
    """Return the energy after each step of a flow without a lid at the Reynolds number 1e5."""
    mesh = box2d(n, n, kind="triangle", perturb=0.2)
    flow = EdgeFlow(point_mesh(context, mesh), 1e-5, lid_walls(mesh.patches, moving=()), stop=Stop(rtol=1e-8))
    flow.initialise(MadeFlow(2, 0.0).velocity)
    found = [flow.state().kinetic_energy]
    for _ in range(steps):
        flow.step(0.4 / n)
        found.append(flow.state().kinetic_energy)
    return np.array(found)
