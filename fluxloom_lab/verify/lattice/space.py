"""Lattice flows in space: the decay of the vortex of Taylor and Green at Reynolds number 1600, and a sphere."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.fft

from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import Body, Outflow, Slip, Velocity, Wall
from fluxloom.lbm.collisions.operators import TRT, Cumulant
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary
from fluxloom.lbm.immersed import sphere as sphere_markers
from fluxloom.lbm.lattices import D3Q19, D3Q27
from fluxloom.lbm.shapes.shapes import Sphere
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.verify.lattice.bodies import BODY, BodyFlow, method_of

__all__ = ["Decay", "decay", "published_decay", "sphere"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decay:
    """Kinetic energy and enstrophy over time, with the volume, the density, the speed and ``L = 1 / k`` as units.

    Attributes
    ----------
    time, energy : (n,)
    whirls : (m, 2)
        Time and enstrophy ``mean(w^2) / 2``, which has been looked at more rarely: it is a transform of Fourier.
    """

    time: Array
    energy: Array
    whirls: Array

    def rate(self) -> tuple[Array, Array]:
        """Return times half-way between two samples, and ``-dE/dt`` there."""
        return 0.5 * (self.time[1:] + self.time[:-1]), -np.diff(self.energy) / np.diff(self.time)

    def peak(self) -> tuple[float, float]:
        """Return when the energy falls fastest, and how fast: of a parabola through the largest and its neighbours."""
        return _top(*self.rate())

    def whirl(self) -> tuple[float, float]:
        """Return when the enstrophy is largest, and how large: of a parabola likewise."""
        return _top(*self.whirls.T)

    def at(self, time: float) -> float:
        """Return the energy at a time."""
        return float(np.interp(time, self.time, self.energy))


def _top(time: Array, values: Array) -> tuple[float, float]:
    k = int(np.argmax(values))
    if not 0 < k < len(values) - 1:
        return float(time[k]), float(values[k])
    a, b, c = np.polyfit(time[k - 1 : k + 2] - time[k], values[k - 1 : k + 2], 2)
    return float(time[k] - b / (2 * a)), float(c - b * b / (4 * a))


def enstrophy(velocity: Array, speed: float) -> float:
    """Return ``mean(w^2) / 2`` of a velocity ``(n, n, n, 3)`` that is periodic, exactly, in units of the vortex.

    In the space of Fourier ``w = i k x u``; a step of the mesh is ``2 pi / n``.
    """
    n = len(velocity)
    whole, half = np.fft.fftfreq(n, 1.0 / n).astype(np.float32), np.arange(n // 2 + 1, dtype=np.float32)
    k = whole[:, None, None], whole[None, :, None], half[None, None, :]
    u = [np.asarray(scipy.fft.rfftn(np.ascontiguousarray(velocity[..., a], np.float32), workers=-1)) for a in range(3)]
    weight = np.where((half == 0) | (2 * half == n), 1.0, 2.0)  # the other half is the conjugate
    found = 0.0
    for a, b in (0, 1), (1, 2), (2, 0):
        w = k[a] * u[b] - k[b] * u[a]
        found += float(((w.real.astype(np.float64) ** 2 + w.imag.astype(np.float64) ** 2) * weight).sum())
    return 0.5 * found / (float(n) ** 6 * speed**2)


def decay(
    context: Context, n: int, end: float = 10.0, reynolds: float = 1600.0, speed: float = 0.1, samples: int = 10,
    dtype: str = "float32", looks: int = 0, since: float = 0.0, odd: float = 0.1,
) -> Decay:  # fmt: skip
    """Return the decay of the vortex on ``n^3`` cells: cumulants on D3Q27, by default in single precision.

    The energy is summed on the device, ``samples`` times in a unit of time. With ``looks`` the velocity comes to the
    host at every so many samples from the time ``since`` on, for the enstrophy; otherwise nothing else does.

    Cumulants of odd orders relax at the rate ``odd``. With 1 they damp small vortices, in proportion to ``h^2``; the
    rates at which that error vanishes are near 0.1 with such viscosities (M. Geier, A. Pasquali, M. Schoenherr, J.
    Comput. Phys. 348 (2017) 862, which has them apart by order).
    """
    k = 2 * pi / n
    flow = LatticeBoltzmann(
        context, (n, n, n), viscosity=speed / (k * reynolds), lattice=D3Q27, collision=Cumulant(odd=odd), dtype=dtype
    )
    x = k * (np.arange(n, dtype=np.float32) + np.float32(0.5))
    z, y = x[:, None, None], x[None, :, None]
    start = np.zeros((n, n, n, 3), dtype=np.float32)
    start[..., 2] = speed * np.sin(x) * np.cos(y) * np.cos(z)
    start[..., 1] = -speed * np.cos(x) * np.sin(y) * np.cos(z)
    pressure = speed**2 / 16.0 * (np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2.0)
    flow.initialise(1.0 + 3.0 * pressure, start)
    unit, every = speed**2 * n**3, max(2, round(1.0 / (speed * k * samples)))
    steps, energy, whirls = [0], [flow.kinetic_energy() / unit], []
    while flow.steps * speed * k < end:
        flow.step(every)
        steps.append(flow.steps)
        energy.append(flow.kinetic_energy() / unit)
        now = flow.steps * speed * k
        if looks and (len(steps) - 1) % looks == 0 and now >= since:
            whirls.append((now, enstrophy(flow.velocity(), speed)))
    flow.check_finite()
    return Decay(np.array(steps) * speed * k, np.array(energy), np.array(whirls).reshape(-1, 2))


def published_decay(data: Path) -> Decay | None:
    """Return the spectral decay on ``512^3`` points of the workshops on high-order methods; None where it is not.

    Its rates are those of the energies, to rounding.
    """
    file = data / "tgv_re1600" / "spectral_Re1600_512.gdiag"
    if not file.is_file():
        return None
    columns = np.loadtxt(file)
    return Decay(columns[::10, 0], columns[::10, 1], columns[::10, [0, 3]])


def sphere(
    context: Context, d: int, method: str = "interpolated", box: tuple[float, float] = (15.0, 10.0),
    speed: float = 0.08, reynolds: float = 100.0, coarse: BodyFlow | None = None,
) -> BodyFlow:  # fmt: skip
    """Return a sphere in a stream whose sides slip.

    Parameters
    ----------
    method
        A name of `fluxloom_lab.verify.lattice.bodies.METHODS`.
    box
        Length and width of the box, in diameters. The sphere is at a third of the length.
    coarse
        A flow on another grid to start with; otherwise the stream is everywhere.
    """
    length, width = (round(d * side) for side in box)
    shape, centre = (width, width, length), (width / 2 - 0.5, width / 2 - 0.5, round(length / 3) - 0.5)
    how = method_of(method)
    wall = Wall(measure=True, interpolated=how.interpolated)
    bodies = [] if how.delta is not None else [Body(BODY, Sphere(centre, d / 2), wall)]
    flow = LatticeBoltzmann(
        context, shape, viscosity=speed * d / reynolds, lattice=D3Q19, collision=TRT(), dtype="float32",
        boundaries={
            "xmin": Velocity((0.0, 0.0, speed)), "xmax": Outflow(),
            **{name: Slip() for name in ("ymin", "ymax", "zmin", "zmax")},
        },
        bodies=bodies,
    )  # fmt: skip
    immersed = None
    if how.delta is not None:
        markers = sphere_markers(centre, d / 2, retract=how.retract)
        immersed = ImmersedBoundary([ImmersedBody(BODY, markers)], delta=how.delta)
        flow.immerse(immersed)
    case = BodyFlow(flow, 0.5 * speed**2 * pi * d * d / 4.0, d / speed, immersed)
    if coarse is not None:
        return case.begun(coarse)
    flow.initialise(1.0, (0.0, 0.0, speed))
    return case
