"""Monai Valley: the run-up of the 1993 Okushiri tsunami in a laboratory, 1 : 400, against what was measured.

NTHMP benchmark problem 7; M. Matsuyama, H. Tanaka: *An experimental study of the highest run-up height in the 1993
Hokkaido Nansei-oki earthquake tsunami*, ITS 2001 Proceedings 7-21. The bed and the wave are files of the benchmark.
What was measured stands here: the run-up in six runs of the experiment, and every tenth value of three gauges, as the
tests of SWALS and ANUGA keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.shallow.boundary import Level
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import bind, box2d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom.solvers.shallow.probes import WaterProbes
from fluxloom.values.tables import TimeSeries, read_raster
from fluxloom_lab.verify.base import Check, Tell

__all__ = ["BED", "FOLDER", "GAUGES", "RUNUP", "WAVE", "Monai", "monai", "monai_checks"]

FloatArray = npt.NDArray[np.float64]

FOLDER, BED, WAVE = "tsunami_monai", "Benchmark_2_Bathymetry.txt", "Benchmark_2_input.txt"
"""Where the files of the benchmark are looked for in a folder of reference data, and their names there."""

RUNUP = {
    (5.1575, 1.8800): (8.75, 9.0, 8.0, 9.0, 10.0, 9.0),  # the valley
    (5.0300, 2.2062): (5.25, 5.75, 5.5, 6.5, 6.75, 6.5),
    (4.9975, 2.3200): (5.25, 5.5, 5.5, 5.75, 5.75, 5.75),
}
"""Measured run-up in centimetres: place in metres to that of each of six runs."""


@dataclass(frozen=True)
class Gauge:
    """What a gauge measured.

    Attributes
    ----------
    place
        In metres.
    arrival
        When the surface first rises through zero, seconds.
    crest
        Highest surface, centimetres.
    series
        Surface at `TIMES`, centimetres.
    """

    place: tuple[float, float]
    arrival: float
    crest: float
    series: tuple[float, ...]


TIMES = np.arange(10.0, 25.01, 0.5)
"""Seconds; what the gauges show before is not from this wave."""

GAUGES = {
    "5": Gauge((4.521, 1.196), 14.4, 3.694, (
        -0.066, -0.286, -0.436, -0.516, -0.596, -0.686, -0.796, -0.866, -0.896, 0.424, 0.684, 1.014, 1.234, 1.284,
        1.304, 3.494, 2.694, 2.894, 3.034, 3.394, 2.314, 2.084, 1.774, 1.014, 0.684, 0.414, 0.094, -0.096, -0.516,
        -0.746, -0.796,
    )),
    "7": Gauge((4.521, 1.696), 14.6, 3.895, (
        -0.015, -0.185, -0.235, -0.245, -0.325, -0.435, -0.465, -0.505, -0.605, -0.715, 0.805, 1.385, 1.755, 1.815,
        3.895, 3.245, 2.755, 2.335, 2.925, 2.165, 1.665, 2.145, 1.395, 1.155, 0.865, 0.715, 0.125, 0.055, -0.175,
        -0.355, -0.465,
    )),
    "9": Gauge((4.521, 2.196), 14.7, 4.535, (
        0.125, 0.115, 0.085, 0.005, -0.075, -0.155, -0.205, -0.235, -0.245, -0.255, 0.785, 1.115, 1.645, 2.685,
        3.435, 3.615, 3.035, 2.395, 1.825, 1.455, 1.685, 1.075, 1.005, 1.045, 0.875, 0.435, 0.305, 0.075, -0.065,
        -0.245, -0.305,
    )),
}  # fmt: skip
"""The measured records."""

_LENGTH, _WIDTH = 5.488, 3.402  # metres
_WALL_FROM = 22.5  # seconds: the wave has come in, and where it came from is a wall
_FILM = 2e-3  # metres: what stands as deep counts as wet (as SWALS and GeoClaw take it in this problem)
_NEAR = 0.05  # metres
_RUNUP_SOURCE = "NTHMP benchmark 7, mean of six runs (Matsuyama and Tanaka 2001)"
_GAUGE_SOURCE = "NTHMP benchmark 7, measured (Matsuyama and Tanaka 2001)"


@dataclass(frozen=True, eq=False)
class Monai:
    """What came out; lengths in centimetres, times in seconds.

    Attributes
    ----------
    runup
        Highest surface where it was dry at the start.
    place
        Where, in metres.
    near
        Highest such surface within 5 cm of each place of `RUNUP`.
    times : (n,)
        Of the rows of the gauges.
    surface : (n, 3)
        At `GAUGES`.
    defect
        Of the mass, relative.
    """

    runup: float
    place: tuple[float, float]
    near: tuple[float, ...]
    times: FloatArray
    surface: FloatArray
    defect: float

    def error(self, column: int, measured: Gauge) -> float:
        """Return the mean absolute error of a gauge, as a part of the range that was measured."""
        values = np.array(measured.series)
        found = np.interp(TIMES, self.times, self.surface[:, column])
        return float(np.abs(found - values).mean() / (measured.crest - values.min()))

    def arrival(self, column: int) -> float:
        """Return when the surface at a gauge rises through zero, after the trough that leads the wave."""
        trough = int(np.argmin(np.where(self.times < 16.0, self.surface[:, column], np.inf)))
        return float(self.times[trough + int(np.argmax(self.surface[trough:, column] > 0.0))])


def monai(context: Context, folder: Path, columns: int = 160, end: float = 25.0) -> Monai:
    """Send the wave of the benchmark up the valley.

    The surface at ``x = 0`` is that of the file, which is the water surface there and not the incoming wave alone;
    after 22.5 s there is a wall. Manning's coefficient is 0.01.

    Parameters
    ----------
    context
        Where it runs.
    folder
        Holds `BED` and `WAVE`.
    columns
        Intervals along the tank; with 160 those in the valley are 1.3 cm long, those of the bed's grid are 1.4 cm.
    end
        Seconds.

    Raises
    ------
    CaseError
        When a file is not there or is not what it should be.
    """
    depth = read_raster(folder / BED)
    wave = Level(TimeSeries(str(folder / WAVE), outside="hold"), _WALL_FROM)
    mesh = bind(_monai_mesh(columns), context)
    water = ShallowWater(
        mesh, lambda x, y: -depth(x, y), scheme=ShallowScheme(manning=0.01), boundaries={"xmin": wave}, film=_FILM
    )
    dry = water.depth() <= water.thin
    gauges = WaterProbes(water, {name: gauge.place for name, gauge in GAUGES.items()})
    for time in np.arange(0.05, end + 1e-9, 0.05):
        water.advance_to(float(time))
        gauges.sample()
    times, values = gauges.records.values()
    x, y = mesh.centroids.read().T
    top = np.where(dry, water.highest_surface(), np.nan)
    most = int(np.nanargmax(top))
    near = tuple(100.0 * float(np.nanmax(top[np.hypot(x - at[0], y - at[1]) < _NEAR])) for at in RUNUP)
    place = (float(x[most]), float(y[most]))
    return Monai(100.0 * float(top[most]), place, near, times, 100.0 * values[:, :, 1], abs(water.survey().defect))


def _monai_mesh(columns: int) -> MeshData:
    """Return the tank in triangles, with intervals a quarter as long round the valley as elsewhere."""
    data = box2d(columns, round(0.744 * columns), kind="triangle")
    x, y = data.points.T
    points = np.stack([_closer(_LENGTH, 4.7, 10.0)(x), _closer(_WIDTH, 1.45, 2.5)(y)], axis=1)
    return MeshData(points, data.cells, data.patches, data.source)


def _closer(length: float, low: float, high: float) -> Callable[[FloatArray], FloatArray]:
    """Return a map of [0, 1] onto [0, length] that lays points four times as close between two places."""
    at = np.linspace(0.0, length, 4001)
    density = 1.0 + 1.5 * (np.tanh((at - low) / 0.16) - np.tanh((at - high) / 0.16))
    count = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1])))
    return lambda part: np.interp(part, count / count[-1], at)


def monai_checks(context: Callable[[], Context], data: Path | None, tell: Tell) -> Iterator[Check]:
    """Compare the run-up and the gauges with what was measured; without the files tell why this is left out.

    NTHMP allows 20 % in the run-up of experiments; a tenth of the range as mean error of a gauge is what SWALS allows
    itself in this benchmark.
    """
    folder = data / FOLDER if data is not None else None
    lack = [name for name in (BED, WAVE) if folder is not None and not (folder / name).is_file()]
    if folder is None or lack:
        told = f"there is no {folder / lack[0]}" if folder is not None else "its files are needed, see --data"
        tell(f"Monai Valley is left out: {told}")
        return
    tell("Monai Valley")
    found = monai(context(), folder)
    yield Check("Monai: highest run-up, cm", found.runup, _mean(0), 0.2, _RUNUP_SOURCE)
    away = float(np.hypot(*np.subtract(found.place, next(iter(RUNUP)))))
    yield Check("Monai: metres from there to the place where it was measured", away, 0.0, _NEAR, _RUNUP_SOURCE)
    for k, (x, y) in enumerate(RUNUP):
        if k:
            yield Check(f"Monai: run-up near ({x:g}, {y:g}), cm", found.near[k], _mean(k), 0.2, _RUNUP_SOURCE)
    for k, (name, gauge) in enumerate(GAUGES.items()):
        crest = float(found.surface[:, k].max())
        yield Check(f"Monai: highest surface at gauge {name}, cm", crest, gauge.crest, 0.12, _GAUGE_SOURCE)
        yield Check("Monai: time when it rises there, s", found.arrival(k), gauge.arrival, 0.03, _GAUGE_SOURCE)
        yield Check("Monai: mean error there, over the range", found.error(k, gauge), 0.0, 0.1, _GAUGE_SOURCE)
    yield Check("Monai: mass defect", found.defect, 0.0, 1e-12, "conservation, with what came in")


def _mean(site: int) -> float:
    """Return the run-up at a place, the mean of all runs."""
    return float(np.mean(list(RUNUP.values())[site]))
