"""The computations behind ``fluxloom verify tsunami``: each returns the few numbers that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from math import acosh, sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.shallow.boundary import Incident
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import bind, box2d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom.solvers.shallow.probes import WaterProbes
from fluxloom.values.tables import TimeSeries
from fluxloom_lab.exact.shallow_exact import DamBreak, ParabolicBasin

__all__ = ["ISLAND_RUNUP", "Beach", "beach", "dam_break", "island", "lake_at_rest", "parabolic_basin"]

FloatArray = npt.NDArray[np.float64]

_COT = 19.85  # of the slope of the beach
_HEIGHT = 0.019  # of the solitary wave on it, over the depth

ISLAND_RUNUP = {
    0.0: 2.17, 22.5: 1.60, 45.0: 1.37, 67.5: 1.10, 90.0: 2.25, 112.5: 1.03, 135.0: 1.49, 157.5: 1.52,
    180.0: 2.13, 202.5: 2.44, 225.0: 2.51, 247.5: 3.20, 270.0: 3.20, 292.5: 3.05, 315.0: 3.03, 337.5: 2.44,
}  # fmt: skip
"""Measured run-up round the conical island, case A: angle in degrees (the wave comes from 270) to centimetres."""


def lake_at_rest(context: Context, order: int, cells: int = 24, time: float = 1.0) -> tuple[float, int]:
    """Return the largest speed of water that should rest round an island and a shore, and the steps.

    Irregular triangles; the bed has a hill that reaches out of the water and a dry corner; still depth about 1.
    """
    mesh = bind(box2d(cells, cells, kind="triangle", perturb=0.25, seed=4), context)

    def bed(x: FloatArray, y: FloatArray) -> FloatArray:
        hill = 1.6 * np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.02)
        return -1.0 + hill + 0.3 * np.sin(7.0 * x) * np.cos(5.0 * y) + 2.0 * np.maximum(0.0, x + y - 1.6)

    water = ShallowWater(mesh, bed, 0.1, scheme=ShallowScheme(order=order))
    water.advance_to(time)
    return water.survey().speed, water.steps


def dam_break(context: Context, right: float, order: int, cells: int) -> tuple[float, float, float]:
    """Return relative L1 error of the depth, error of the front over its way, and the mass defect.

    Depths 1 and ``right``, gravity 1, at t = 0.4 on [-1, 1]. The front is where the depth passes half of the shock, or
    on a dry bed 1/100.
    """
    exact = DamBreak(1.0, right, 1.0)
    data = box2d(cells, 3, (2.0, 6.0 / cells), "triangle", origin=(-1.0, 0.0), perturb=0.1, seed=1)
    mesh = bind(data, context)
    scheme = ShallowScheme(order=order, gravity=1.0, cfl=0.45)
    water = ShallowWater(mesh, 0.0, lambda x, _y: np.where(x < 0.0, 1.0, right), scheme=scheme)
    time = 0.4
    water.advance_to(time)
    x, area, depth = mesh.centroids.read()[:, 0], mesh.volumes.read(), water.depth()
    wanted = exact(x, time)[0]
    error = float((np.abs(depth - wanted) * area).sum() / (wanted * area).sum())
    level = 0.01 if right == 0.0 else 0.5 * (right + exact.middle[0])
    fine = np.linspace(-1.0, 1.0, 20_001)
    front = fine[exact(fine, time)[0] > level].max()
    return error, float(abs(x[depth > level].max() - front) / front), abs(water.survey().defect)


def parabolic_basin(context: Context, order: int, cells: int) -> tuple[float, float]:
    """Return the relative L1 error of the depth after one period of Thacker's planar motion, and the mass defect."""
    exact = ParabolicBasin()
    mesh = bind(box2d(cells, cells, (4.0, 4.0), "triangle", origin=(-2.0, -2.0), perturb=0.1, seed=1), context)

    def start(x: FloatArray, y: FloatArray) -> FloatArray:
        return exact.surface(x, y, 0.0)

    def speed(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(start(x, y) > exact.bed(x, y), exact.velocity(0.0)[1], 0.0)

    water = ShallowWater(mesh, exact.bed, start, (0.0, speed), scheme=ShallowScheme(order=order))
    water.advance_to(exact.period)
    x, y = mesh.centroids.read().T
    wanted = np.maximum(0.0, start(x, y) - exact.bed(x, y))
    area = mesh.volumes.read()
    error = float((np.abs(water.depth() - wanted) * area).sum() / (wanted * area).sum())
    return error, abs(water.survey().defect)


@dataclass(frozen=True)
class Beach:
    """A solitary wave on a beach, lengths over the depth, times over ``sqrt(d / g)``.

    Attributes
    ----------
    runup
        Highest surface on the beach.
    crest, arrival
        Highest surface at ``x = 9.95`` before the reflected wave, and when.
    near_crest, near_arrival
        The same at ``x = 0.25``.
    defect
        Of the mass, relative.
    """

    runup: float
    crest: float
    arrival: float
    near_crest: float
    near_arrival: float
    defect: float


def beach(context: Context, order: int = 2, spacing: float = 0.1) -> Beach:
    """Run a solitary wave of height 0.019 up a beach of slope 1 : 19.85 (NTHMP benchmark problem 1).

    At the start its crest is at ``x = cot b + arcosh(sqrt 20) / sqrt(3 H / 4)`` from the shore.
    """
    low, high = -3.0, 60.0
    count = round((high - low) / spacing)
    mesh = bind(box2d(count, 1, (high - low, spacing), "triangle", origin=(low, 0.0)), context)
    steep = sqrt(0.75 * _HEIGHT)
    centre = _COT + acosh(sqrt(20.0)) / steep

    def bed(x: FloatArray, _y: FloatArray) -> FloatArray:
        return np.maximum(-1.0, -x / _COT)

    def wave(x: FloatArray, _y: FloatArray) -> FloatArray:
        return _HEIGHT / np.cosh(steep * (x - centre)) ** 2

    def speed(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(x > 0.0, -wave(x, y), 0.0)

    scheme = ShallowScheme(order=order, gravity=1.0)
    water = ShallowWater(mesh, bed, wave, (speed, 0.0), scheme=scheme, boundaries={"xmax": Incident()})
    middle = 0.5 * spacing
    gauges = WaterProbes(water, {"far": (9.95, middle), "near": (0.25, middle)})
    for time in np.arange(0.25, 75.01, 0.25):
        water.advance_to(float(time))
        gauges.sample()
    times, values = gauges.records.values()
    series = np.column_stack([times, values[:, :, 1]])
    incoming = series[:, 0] < 40.0
    far = int(np.argmax(np.where(incoming, series[:, 1], -1.0)))
    near = int(np.argmax(series[:, 2]))
    survey = water.survey()
    runup = float(np.nanmax(water.highest_surface()))
    return Beach(runup, series[far, 1], series[far, 0], series[near, 2], series[near, 0], abs(survey.defect))


def island(context: Context, around: int = 48, along: int = 80, height: float = 0.045) -> dict[float, float]:
    """Return the run-up in centimetres at the angles of `ISLAND_RUNUP` round a conical island.

    Briggs, Synolakis, Harkins, Green 1995, case A: depth 0.32 m, cone with radii 3.6 and 1.1 m and slope 1 : 4. Half of
    the basin is computed, with a wall where it is symmetric; the run-up is that of both halves.

    Parameters
    ----------
    context
        Where it runs.
    around, along
        Intervals round half of the island, and from it to the sides of the basin.
    height
        Of the solitary wave over the depth.
    """
    depth, gravity = 0.32, 9.81
    mesh = bind(_island_mesh(around, along), context)
    steep = sqrt(0.75 * height / depth**2)
    celerity = sqrt(gravity * depth * (1.0 + height))
    times = np.arange(0.0, 20.0, 0.02)
    wave = height * depth / np.cosh(steep * celerity * (times - 5.0)) ** 2

    def bed(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.minimum(0.625, np.maximum(0.0, (3.6 - np.hypot(x, y)) / 4.0)) - depth

    sides = {"west": Incident(TimeSeries(times=times, outside="hold", numbers=wave)), "east": Incident()}
    water = ShallowWater(mesh, bed, 0.0, scheme=ShallowScheme(manning=0.013), boundaries=sides, film=5e-4)
    water.advance_to(18.0)
    x, y = mesh.centroids.read().T
    top = water.highest_surface()
    # The wave comes from the west, which is 270 degrees; the lee, east, is 90.
    angle = np.degrees(np.arctan2(y, x))
    found = {}
    for place in ISLAND_RUNUP:
        here = abs((place - 90.0 + 180.0) % 360.0 - 180.0)
        near = (np.abs(angle - here) < 4.0) & (np.hypot(x, y) < 2.6)
        found[place] = 100.0 * float(np.nanmax(top[near]))
    return found


def _island_mesh(around: int, along: int) -> MeshData:
    """Return half a ring of triangles from the crest of the cone to the walls of a basin 25 m by 13.8 m (half)."""
    unit = box2d(along, around, kind="triangle")
    s, t = unit.points.T
    # Intervals of radius: fine where the shore moves, growing towards the sides of the basin.
    shore = np.clip(s / 0.55, 0.0, 1.0)
    outer = np.clip((s - 0.55) / 0.45, 0.0, 1.0)
    angle = np.pi * t
    ray = np.minimum(12.5 / np.maximum(np.abs(np.cos(angle)), 1e-12), 13.8 / np.maximum(np.abs(np.sin(angle)), 1e-12))
    radius = 1.95 + 0.75 * shore + outer**1.8 * (ray - 2.7)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    middle = unit.patch("xmax").blocks["line"]
    centre = points[middle].mean(axis=1)
    patches = {name: unit.patches[name] for name in ("xmin", "ymin", "ymax")}
    for name, side in (("east", centre[:, 0] > 12.4), ("west", centre[:, 0] < -12.4), ("north", centre[:, 1] > 13.7)):
        patches[name] = type(unit.patch("xmax"))({"line": middle[side]})
    return MeshData(points, unit.cells, patches, unit.source)
