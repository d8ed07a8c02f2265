"""Lattice flows in space: the decay of the vortex of Taylor and Green at Reynolds number 1600, and a sphere."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.app.verify.lbm_bodies import BodyFlow
from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import Body, Outflow, Slip, Velocity, Wall
from fluxloom.lbm.collisions import TRT, Cumulant
from fluxloom.lbm.lattices import D3Q19, D3Q27
from fluxloom.lbm.shapes import Sphere
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["Decay", "decay", "published_decay", "sphere"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decay:
    """Kinetic energy over time, with the volume, the density, the speed and ``L = 1 / k`` as units.

    Attributes
    ----------
    time, energy : (n,)
    """

    time: Array
    energy: Array

    def rate(self) -> tuple[Array, Array]:
        """Return times half-way between two samples, and ``-dE/dt`` there."""
        return 0.5 * (self.time[1:] + self.time[:-1]), -np.diff(self.energy) / np.diff(self.time)

    def peak(self) -> tuple[float, float]:
        """Return when the energy falls fastest, and how fast: of a parabola through the largest and its neighbours."""
        time, rate = self.rate()
        k = int(np.clip(np.argmax(rate), 1, len(rate) - 2))
        a, b, c = np.polyfit(time[k - 1 : k + 2] - time[k], rate[k - 1 : k + 2], 2)
        return float(time[k] - b / (2 * a)), float(c - b * b / (4 * a))

    def at(self, time: float) -> float:
        """Return the energy at a time."""
        return float(np.interp(time, self.time, self.energy))


def decay(
    context: Context, n: int, end: float = 10.0, reynolds: float = 1600.0, speed: float = 0.1, samples: int = 10
) -> Decay:
    """Return the decay of the vortex on ``n^3`` cells: cumulants on D3Q27 in single precision.

    The energy is summed on the device, ``samples`` times in a unit of time; nothing else comes to the host.
    """
    k = 2 * pi / n
    flow = LatticeBoltzmann(
        context, (n, n, n), viscosity=speed / (k * reynolds), lattice=D3Q27, collision=Cumulant(), dtype="float32"
    )
    x = k * (np.arange(n, dtype=np.float32) + np.float32(0.5))
    z, y = x[:, None, None], x[None, :, None]
    start = np.zeros((n, n, n, 3), dtype=np.float32)
    start[..., 2] = speed * np.sin(x) * np.cos(y) * np.cos(z)
    start[..., 1] = -speed * np.cos(x) * np.sin(y) * np.cos(z)
    pressure = speed**2 / 16.0 * (np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2.0)
    flow.initialise(1.0 + 3.0 * pressure, start)
    unit, every = speed**2 * n**3, max(2, round(1.0 / (speed * k * samples)))
    steps, energy = [0], [flow.kinetic_energy() / unit]
    while flow.steps * speed * k < end:
        flow.step(every)
        steps.append(flow.steps)
        energy.append(flow.kinetic_energy() / unit)
    flow.check_finite()
    return Decay(np.array(steps) * speed * k, np.array(energy))


def published_decay(data: Path) -> Decay | None:
    """Return the spectral decay on ``512^3`` points of the workshops on high-order methods; None where it is not.

    Its rates are those of the energies, to rounding.
    """
    file = data / "tgv_re1600" / "spectral_Re1600_512.gdiag"
    if not file.is_file():
        return None
    columns = np.loadtxt(file)
    return Decay(columns[::10, 0], columns[::10, 1])


def sphere(context: Context, d: int, speed: float = 0.1, reynolds: float = 100.0) -> BodyFlow:
    """Return a sphere in a stream in a box of 12 by 8 by 8 diameters, 4 from the inlet; its sides slip."""
    shape, centre = (8 * d, 8 * d, 12 * d), (4.0 * d - 0.5, 4.0 * d - 0.5, 4.0 * d - 0.5)
    wall = Wall(measure=True, interpolated=True)
    flow = LatticeBoltzmann(
        context, shape, viscosity=speed * d / reynolds, lattice=D3Q19, collision=TRT(), dtype="float32",
        boundaries={
            "xmin": Velocity((0.0, 0.0, speed)), "xmax": Outflow(),
            **{name: Slip() for name in ("ymin", "ymax", "zmin", "zmax")},
        },
        bodies=[Body("body", Sphere(centre, d / 2), wall)],
    )  # fmt: skip
    flow.initialise(1.0, (0.0, 0.0, speed))
    return BodyFlow(flow, 0.5 * speed**2 * pi * d * d / 4.0, d / speed)
