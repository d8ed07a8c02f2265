"""NACA 0012 beside published forces: without friction at Mach 0.5 and 0.8, laminar, and turbulent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fluxloom.app.verify.base import Check, Tell
from fluxloom.app.verify.published import Published, family, limit, settled, steady
from fluxloom.app.verify.published_cases import Settled, euler_airfoil, laminar_airfoil, turbulent_airfoil
from fluxloom.dsl.context import Context

__all__ = ["AirfoilsVerification", "separation"]

_LIMIT = "Vassberg and Jameson 2010, CFL3D, limit of their meshes"
_AROUND = "Vassberg and Jameson 2010, CFL3D, 256 x 256 quads"
_SHOCKS = "AGARD-AR-211, 1985: 0.022 to 0.023"
_NO_DRAG = "none without friction and shocks"
_VORTEX = "a vortex turns the stream by cl c / (8 pi R)"
_LAMINAR = "spread of codes, 0.0550 to 0.0557"
_SEPARATION = "spread of codes, 0.81 to 0.82"
_FINE = "NASA's turbulence models, CFL3D, finest meshes"
_SAME = "NASA's turbulence models, CFL3D without a vortex far away, as many cells (meshes of family I)"


def _subsonic(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    del data
    sizes = (64, 128, 256, 512) if full else (32, 64)
    cases = {f"M 0.5, {n} x {n} quads": euler_airfoil(0.5, n) for n in sizes}
    found = family(context, tell, cases, sizes[0], 1e-10)
    lifts = [f.coefficients.lift for f in found]
    what = f"NACA 0012 without friction, M 0.5, {sizes[-1]} quads around"
    yield steady(what, found[-1], 1e-7)
    yield Check(f"{what}: lift", lifts[-1], 0.179784, 0.01 if full else 0.05, _LIMIT)
    yield Check(f"{what}: drag", found[-1].coefficients.drag, 0.0, 1e-4 if full else 5e-3, _NO_DRAG)
    if full:
        value, words = limit(lifts)
        yield Check("NACA 0012 without friction, M 0.5, limit: lift", value, 0.179784, 0.005, f"{_LIMIT}; {words}")
        far = settled(context, tell, "M 0.5, 128 quads around, 600 chords", euler_airfoil(0.5, 128, 600.0), 1e-10)
        nearer = lifts[sizes.index(128)]
        yield Check("the same, 128 quads around: lift with the end 600 chords away, over that with 150",
                    far.coefficients.lift / nearer, 1.0, 0.005, _VORTEX)  # fmt: skip


def _transonic(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    del data
    sizes = (64, 128, 256) if full else (64,)
    cases = {f"M 0.8, {n} quads around": euler_airfoil(0.8, n) for n in sizes}
    found = family(context, tell, cases, sizes[0], 1e-8)[-1]
    what = f"NACA 0012 without friction, M 0.8, {sizes[-1]} quads around"
    yield steady(what, found, 1e-5)
    yield Check(f"{what}: lift", found.coefficients.lift, 0.359073, 0.03 if full else 0.08, _AROUND)
    yield Check(f"{what}: drag", found.coefficients.drag, 0.0225, 0.05 if full else 0.2, _SHOCKS)


def _laminar(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    sizes = (64, 128, 256, 512) if full else (64, 128)
    cases = {f"laminar, {n} x {n // 2} quads": laminar_airfoil(None, n) for n in sizes}
    found = family(context, tell, cases, sizes[0] // 2, 1e-9)
    what = f"NACA 0012 laminar, {sizes[-1]} x {sizes[-1] // 2} quads"
    yield steady(what, found[-1], 1e-6)
    yield from _laminar_checks(what, found[-1], 0.015 if full else 0.05)
    if full:
        value, words = limit([f.coefficients.drag for f in found])
        yield Check("NACA 0012 laminar, limit: drag", value, 0.05535, 0.01, f"{_LAMINAR}; {words}")
        what = "NACA 0012 laminar, triangles and quads"
        hybrid = settled(context, tell, what, laminar_airfoil(data), 1e-6)
        yield steady(what, hybrid, 1e-6)
        yield from _laminar_checks(what, hybrid, 0.025)


def _laminar_checks(what: str, found: Settled, tolerance: float) -> Iterator[Check]:
    yield Check(f"{what}: drag", found.coefficients.drag, 0.05535, tolerance, _LAMINAR)
    yield Check(f"{what}: where it separates", separation(found), 0.815, 2.0 * tolerance, _SEPARATION)


def separation(found: Settled) -> float:
    """Return the place behind which the friction of the upper side is against ``x`` first; NaN if there is none."""
    upper = (found.wall.places[:, 1] > 0.0) & (found.wall.places[:, 0] > 0.2)
    x, cf = found.wall.places[upper, 0], found.cf[upper]
    last = np.flatnonzero((cf[:-1] > 0.0) & (cf[1:] <= 0.0))
    if not last.size:
        return float("nan")
    k = int(last[0])
    return float(x[k] + cf[k] / (cf[k] - cf[k + 1]) * (x[k + 1] - x[k]))


def _turbulent(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    sizes = ("113-33", "225-65")[: 2 if full else 1]
    cases = {f"turbulent, {size}": turbulent_airfoil(data, size, 10.0) for size in sizes}
    found = family(context, tell, cases, 32, 1e-9)
    what = f"NACA 0012 turbulent, 10 degrees, {sizes[-1]}"
    yield steady(what, found[-1], 1e-6)
    lift, drag = found[-1].coefficients.lift, found[-1].coefficients.drag
    if not full:
        yield Check(f"{what}: lift", lift, 1.0894, 0.1, _FINE)
        return
    yield Check(f"{what}: lift", lift, 1.08357, 0.02, _SAME)
    yield Check(f"{what}: drag", drag, 0.014532, 0.05, _SAME)
    yield Check(f"{what}: friction in it", found[-1].friction, 0.0061610, 0.03, _SAME)


class AirfoilsVerification(Published):
    """NACA 0012 in five flows; ``--full``: finer meshes, with limits."""

    title = "airfoils: NACA 0012 at Mach 0.5 and 0.8, laminar, and turbulent (published values, --data)"
    groups = {  # noqa: RUF012
        "without friction, Mach 0.5": _subsonic,
        "turbulent": _turbulent,
        "laminar": _laminar,
        "without friction, Mach 0.8": _transonic,
    }
