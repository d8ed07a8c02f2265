"""Plates, a bump and a wedge beside published friction, forces and the exact shock."""

from __future__ import annotations

from collections.abc import Iterator
from math import atan, degrees, radians, tan
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.gas import oblique_shock
from fluxloom_lab.problems.published_cases import bump, laminar_plate, turbulent_plate, wedge
from fluxloom_lab.verify.base import Check, Tell
from fluxloom_lab.verify.compressible.published import Published, family, limit, settled, steady

__all__ = ["WallsVerification", "shock_angle"]

Array = npt.NDArray[np.float64]

_PLATE = "NASA's turbulence models, CFL3D, 545 x 385"
_BUMP = "NASA's turbulence models, CFL3D, 1409 x 641"
_SAME = "NASA's turbulence models, CFL3D, as many cells"
_BLASIUS = "Blasius 1908, 0.664 / sqrt(Re)"
_WEDGE = "oblique shock: NACA 1135, 1953"
_BEGIN, _LENGTH = 0.5, 1.5
"""Where the wedge begins and its mesh ends; columns of its cells are of one width."""


def _wedge(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    del full
    exact, wall = oblique_shock(2.0, 10.0), tan(radians(10.0))
    for suffix in ("su2", "cgns"):
        found = settled(context, tell, f"wedge, {suffix}", wedge(data, suffix), 1e-8)
        what = f"wedge of 10 degrees at Mach 2, {suffix}"
        yield steady(what, found, 1e-8)
        places, pressure = found.flow.volumes.centres[: found.flow.volumes.cells], found.flow.states()[:, 3]
        behind = (places[:, 0] > 1.0) & (places[:, 1] - (places[:, 0] - _BEGIN) * wall < 0.1)
        yield Check(f"{what}: pressure behind the shock", float(pressure[behind].mean()), exact.pressure, 0.01, _WEDGE)
        angle = shock_angle(places, pressure, exact.pressure, len(found.wall))
        yield Check(f"{what}: angle of the shock", angle, exact.angle, 0.01, _WEDGE)


def shock_angle(places: Array, pressure: Array, behind: float, columns: int) -> float:
    """Return the angle of the line where the pressure is halfway between 1 and that behind the shock of the wedge.

    Parameters
    ----------
    places, pressure
        Of cells.
    behind
        Pressure behind the shock.
    columns
        How many columns of cells there are up to ``x = 1.5``.
    """
    level, line = 0.5 * (1.0 + behind), []
    number = np.floor(places[:, 0] / _LENGTH * columns).astype(np.int64)
    for column in range(round(0.5 * columns), round(0.9 * columns)):
        cells = np.flatnonzero(number == column)
        cells = cells[np.argsort(places[cells, 1])]
        (x, y), p = places[cells].T, pressure[cells]
        last = int(np.flatnonzero(p > level)[-1])
        part = (p[last] - level) / (p[last] - p[last + 1])
        line.append((x[last], y[last] + part * (y[last + 1] - y[last])))
    across = np.array(line)
    return degrees(atan(np.polyfit(across[:, 0], across[:, 1], 1)[0]))


def _blasius(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    if not full:
        return
    case = laminar_plate(data)
    what, viscosity = "laminar plate, 65 x 65 nodes", case.gas.viscosity
    assert viscosity is not None
    found = settled(context, tell, what, case, 1e-8)
    yield steady(what, found, 1e-8)
    nu = float(viscosity.at(case.stream.temperature)) / case.stream.density(case.gas)
    for part in (0.25, 0.5, 0.75):
        x = part * case.length
        exact = 0.664 / (case.stream.speed(case.gas) * x / nu) ** 0.5
        yield Check(f"{what}: friction at {part:g} of its length", found.at(x, found.cf), exact, 0.02, _BLASIUS)


def _plate(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    sizes = ("035x025", "069x049", "137x097")[: 3 if full else 2]
    found = family(context, tell, {f"plate, {size}": turbulent_plate(data, size) for size in sizes}, 24, 1e-10)
    what, tolerance = f"turbulent plate, {sizes[-1]} nodes", 0.01 if full else 0.02
    yield steady(what, found[-1], 1e-7)
    friction, drag = [f.at(0.97, f.cf) for f in found], [f.coefficients.drag for f in found]
    yield Check(f"{what}: friction at 0.97", friction[-1], 0.002706, tolerance, _PLATE)
    yield Check(f"{what}: drag", drag[-1], 0.002860, tolerance, _PLATE)
    if full:
        for name, values, wanted in (("friction at 0.97", friction, 0.002706), ("drag", drag, 0.002860)):
            value, words = limit(values)
            yield Check(f"turbulent plate, limit: {name}", value, wanted, 0.01, f"{_PLATE}; {words}")


def _bump(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    sizes = ("0089x041", "0177x081", "0353x161")[: 3 if full else 1]
    found = family(context, tell, {f"bump, {size}": bump(data, size) for size in sizes}, 40, 1e-9)
    what = f"bump, {sizes[-1]} nodes"
    yield steady(what, found[-1], 1e-6 if full else 1e-9)
    wanted = (0.02490, 0.003572, 0.006149) if full else (0.02350, 0.004698, 0.005735)
    values = (
        [f.coefficients.lift for f in found],
        [f.coefficients.drag for f in found],
        [f.at(0.75, f.cf) for f in found],
    )
    for name, value, reference in zip(("lift", "drag", "friction at 0.75"), values, wanted, strict=True):
        yield Check(f"{what}: {name}", value[-1], reference, 0.02 if full else 0.11, _BUMP if full else _SAME)
        if full:
            end, words = limit(value)
            yield Check(f"bump, limit: {name}", end, reference, 0.02, f"{_BUMP}; {words}")


class WallsVerification(Published):
    """A wedge, a turbulent plate and a bump; ``--full``: their finer meshes, with limits, and a laminar plate."""

    title = "walls: a wedge at Mach 2, laminar and turbulent plates, a turbulent bump (published values, --data)"
    groups = {"a wedge": _wedge, "a turbulent plate": _plate, "a bump": _bump, "a laminar plate": _blasius}  # noqa: RUF012
