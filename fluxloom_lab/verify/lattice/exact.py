"""Lattice flows that are known exactly: vortices and waves that decay, channels, the storage of populations."""

from __future__ import annotations

from math import exp, log, pi

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import Body, Pressure, PressureScheme, Velocity, VelocityScheme, Wall
from fluxloom.lbm.collisions.operators import TRT, Collision
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary, Pose, Prescribed, circle
from fluxloom.lbm.lattices import D2Q9
from fluxloom.lbm.shapes.shapes import HalfSpace
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.exact.taylor_green import lattice_vortices

__all__ = [
    "balance_errors", "channel_error", "force_channel_error", "mass_drift", "offset_channel_error", "shear_viscosity",
    "vortex_error", "vortex_velocity",
]  # fmt: skip

Array = npt.NDArray[np.float64]

EXACT = TRT(magic=3 / 16)
"""With it half-way walls are exactly half-way in a channel."""


def vortex_velocity(
    context: Context, n: int, collision: Collision, dtype: str = "float64", speed: float = 0.0
) -> tuple[Array, Array]:
    """Return the velocity of the vortex of Taylor and Green at ``2 nu k^2 t = 1``: computed and exact.

    Parameters
    ----------
    speed
        At the start; by default it falls with the cell size, and with its square what compressibility does.
    """
    viscosity, k, speed = 0.1, 2 * pi / n, speed or 0.64 / n
    density, start = lattice_vortices(n, speed)
    flow = LatticeBoltzmann(context, (n, n), viscosity=viscosity, lattice=D2Q9, collision=collision, dtype=dtype)
    flow.initialise(density, start)
    steps = round(1.0 / (2.0 * viscosity * k * k))
    flow.step(steps)
    return flow.velocity().astype(np.float64), start * exp(-2.0 * viscosity * k * k * steps)


def vortex_error(context: Context, n: int, collision: Collision) -> float:
    """Return the relative error of that vortex in L2."""
    found, exact = vortex_velocity(context, n, collision)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def shear_viscosity(context: Context, collision: Collision, wind: float, n: int = 64) -> float:
    """Return the viscosity, over the one asked for, with which a shear wave decays that a wind carries along."""
    viscosity, k = 0.02, 2 * pi / n
    flow = LatticeBoltzmann(context, (3, n), viscosity=viscosity, lattice=D2Q9, collision=collision, dtype="float64")
    start = np.zeros((3, n, 2))
    start[..., 0], start[..., 1] = 0.001 * np.sin(k * np.arange(n)), wind
    flow.initialise(1.0, start)

    def amplitude() -> float:
        return float(np.abs(np.fft.rfft(flow.velocity()[1, :, 0])[1]))

    flow.step(200)
    first = amplitude()
    flow.step(1000)
    return log(first / amplitude()) / (1000 * k * k * viscosity)


def force_channel_error(context: Context, height: int = 9) -> float:
    """Return the greatest error, over the peak, of a channel between half-way walls that a force drives."""
    force, viscosity = 1e-5, 0.25
    flow = LatticeBoltzmann(
        context, (height, 4), viscosity=viscosity, lattice=D2Q9, collision=EXACT, dtype="float64",
        boundaries={"ymin": Wall(), "ymax": Wall()}, force=(0.0, force),
    )  # fmt: skip
    flow.initialise()
    flow.step(4000)
    y = np.arange(height) + 0.5
    exact = force * y * (height - y) / (2.0 * viscosity)
    return float(np.abs(flow.velocity()[:, 1, 1] - exact).max() / exact.max())


def offset_channel_error(context: Context, height: int) -> float:
    """Return the error of a channel that a force drives, between interpolated walls that are not half-way."""
    low, high, viscosity = 1.2, 1.2 + height - 0.35, 0.25
    force = 0.4 / height**3
    plates = [
        Body("low", HalfSpace((low, 0.0), (1.0, 0.0)), Wall(interpolated=True)),
        Body("high", HalfSpace((high, 0.0), (-1.0, 0.0)), Wall(interpolated=True)),
    ]
    flow = LatticeBoltzmann(
        context, (height + 4, 4), viscosity=viscosity, lattice=D2Q9, dtype="float64",
        boundaries={"ymin": Wall(), "ymax": Wall()}, bodies=plates, force=(0.0, force),
    )  # fmt: skip
    flow.initialise()
    flow.step(10 * height**2)
    y = np.arange(height + 4.0)
    fluid = (y > low) & (y < high)
    exact = force * (y - low) * (high - y) / (2.0 * viscosity)
    return float(np.abs(flow.velocity()[:, 1, 1] - exact)[fluid].max() / exact.max())


def channel_error(context: Context, height: int, inlet: VelocityScheme, outlet: PressureScheme) -> float:
    """Return the greatest error, over the peak, of a channel between an inlet of velocity and an outlet of pressure.

    The speed falls with the cell size, and with its square the changes of density. It starts from the exact flow:
    sides that set velocity or pressure reflect the sound that a start from rest makes.
    """
    length, peak = 2 * height, 0.2 / height

    def parabola(positions: Array) -> Array:
        y = positions[:, 0] + 0.5
        return np.stack([0.0 * y, 4.0 * peak * y * (height - y) / height**2], axis=1)

    sides = {
        "ymin": Wall(), "ymax": Wall(), "xmin": Velocity(parabola, scheme=inlet), "xmax": Pressure(1.0, scheme=outlet)
    }  # fmt: skip
    flow = LatticeBoltzmann(
        context, (height, length), viscosity=0.2, lattice=D2Q9, collision=EXACT, dtype="float64", boundaries=sides
    )
    positions = np.stack(np.meshgrid(np.arange(float(height)), np.arange(float(length)), indexing="ij"), axis=-1)
    fall = 3.0 * 8.0 * 0.2 * peak / height**2 * (length - 1.0 - positions[..., 1])
    flow.initialise(1.0 + fall, parabola(positions.reshape(-1, 2)).reshape(height, length, 2))
    flow.step(40 * height**2)
    middle = np.stack([np.arange(float(height)), np.zeros(height)], axis=1)
    return float(np.abs(flow.velocity()[:, length // 2] - parabola(middle)).max() / peak)


def balance_errors(context: Context, steps: int = 40) -> dict[str, float]:
    """Return how far momentum is from balance around an immersed cylinder that swings in a periodic box.

    In the step ``n`` the body gives the fluid the force ``f_n``. The momentum that the populations have after collision
    grows by ``f_n``. The velocity has half of the force, ``rho u = sum c f - f_n / 2`` of what is stored: its momentum
    grows by ``(f_(n - 1) + f_n) / 2``. Both relative to the largest force.
    """
    turn = 2 * pi / 400

    def pose(step: float) -> Pose:
        way, speed = 3.0 * np.sin(turn * step), 3.0 * turn * np.cos(turn * step)
        return Pose((16.0, 20.0 + float(way)), velocity=(0.0, float(speed)))

    body = ImmersedBody("body", circle((16.0, 20.0), 6.0, retract=0.35), Prescribed(pose))
    flow = LatticeBoltzmann(context, (32, 40), viscosity=0.05, lattice=D2Q9, collision=TRT(), dtype="float64")
    flow.immerse(ImmersedBoundary([body]))
    flow.initialise()
    flow.step(100)
    momenta, stored, forces = [], [], []
    for _ in range(steps):
        flow.step(1)
        forces.append(-flow.force_on("body"))
        momenta.append((flow.density()[..., None] * flow.velocity()).sum(axis=(0, 1)))
        populations = flow.populations.read().reshape(-1, D2Q9.q).sum(axis=0)
        stored.append(populations @ np.array(D2Q9.velocities))
    force, unit = np.array(forces), float(np.abs(forces).max())
    after = np.diff(stored, axis=0) - force[1:]
    seen = np.diff(momenta, axis=0) - 0.5 * (force[1:] + force[:-1])
    return {
        "momentum of populations, less the force": float(np.abs(after).max() / unit),
        "momentum of the velocity, less the mean force of two steps": float(np.abs(seen).max() / unit),
    }


def mass_drift(context: Context) -> float:
    """Return the relative change of the mass in 1000 steps of a closed cavity with a moving lid."""
    walls = {name: Wall() for name in ("xmin", "xmax", "ymin")}
    flow = LatticeBoltzmann(
        context, (24, 24), viscosity=0.02, lattice=D2Q9, dtype="float64",
        boundaries={**walls, "ymax": Wall(velocity=(0.0, 0.1))},
    )  # fmt: skip
    flow.initialise()
    before = flow.mass()
    flow.step(1000)
    return flow.mass() / before - 1.0
