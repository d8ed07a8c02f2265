"""NACA 0012 beside published forces: without friction at Mach 0.5 and 0.8, laminar, and turbulent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom.mesh.generate.naca import NacaProfile
from fluxloom_lab.exact.potential_airfoil import potential_lift
from fluxloom_lab.problems.published_cases import Settled, euler_airfoil, laminar_airfoil, turbulent_airfoil
from fluxloom_lab.verify.base import Check, Tell
from fluxloom_lab.verify.compressible.published import Published, family, limit, settled, steady

__all__ = ["AirfoilsVerification", "exact_lift", "separation"]

_LIMIT = "Vassberg and Jameson 2010, CFL3D without a vortex far away, limit of their meshes"
_AROUND = "Vassberg and Jameson 2010, CFL3D, 256 x 256 quads"
_EXACT = "full potential equation in the conformal plane of the airfoil"
_SHOCKS = "AGARD-AR-211, 1985: 0.022 to 0.023"
_NO_DRAG = "none without friction and shocks"
_VORTEX = "with the vortex of the lift the end may be near"
_LAMINAR = "spread of codes, 0.0550 to 0.0557"
_SEPARATION = "spread of codes, 0.81 to 0.82"
_SYMMETRY = "symmetry"
_STRAIGHT = "NASA's turbulence models, CFL3D, 897 x 257"
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


def _vortex(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    del data
    sizes = (64, 128, 256) if full else (32, 64)
    cases = {f"M 0.5, 20 chords and a vortex, {n} quads around": euler_airfoil(0.5, n, 20.0, vortex=True)
             for n in sizes}  # fmt: skip
    first = len(next(iter(cases.values())).mesh.cells["quad"]) // sizes[0]
    lifts = [found.coefficients.lift for found in family(context, tell, cases, first, 1e-10)]
    exact = exact_lift(0.5, 1.25)
    what = "NACA 0012 without friction, M 0.5, 20 chords and a vortex"
    yield Check(f"{what}, {sizes[-1]} quads around: lift", lifts[-1], exact, 0.005 if full else 0.05, _EXACT)
    if full:
        value, words = limit(lifts)
        yield Check(f"{what}, limit: lift", value, exact, 0.003, f"{_EXACT}; {words}")
    around = sizes[1]
    for reach in (150.0, 600.0)[: 2 if full else 1]:
        told = f"M 0.5, {reach:g} chords and a vortex, {around} quads around"
        far = settled(context, tell, told, euler_airfoil(0.5, around, reach, vortex=True), 1e-10)
        yield Check(f"{what}, {around} quads around: lift with {reach:g} chords over it",
                    far.coefficients.lift / lifts[1], 1.0, 1e-3, _VORTEX)  # fmt: skip


def exact_lift(mach: float, alpha: float) -> float:
    """Return the coefficient of lift of NACA 0012 without friction and shocks, over the chord of the family."""
    profile = NacaProfile.named("0012")
    coarse, fine = (potential_lift(profile, mach, alpha, around).lift for around in (64, 128))
    return (fine + (fine - coarse) / 3.0) / profile.family_chord


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
    what, found = _turbulent_flow(context, data, full, tell, 10.0, 1e-9)
    yield steady(what, found, 1e-6 if full else 1e-9)
    lift, drag = found.coefficients.lift, found.coefficients.drag
    if not full:
        yield Check(f"{what}: lift", lift, 1.0894, 0.1, _FINE)
        return
    yield Check(f"{what}: lift", lift, 1.08357, 0.02, _SAME)
    yield Check(f"{what}: drag", drag, 0.014532, 0.05, _SAME)
    yield Check(f"{what}: friction in it", found.friction, 0.0061610, 0.03, _SAME)


def _turbulent_straight(context: Context, data: Path, full: bool, tell: Tell) -> Iterator[Check]:
    if not full:
        return
    what, found = _turbulent_flow(context, data, full, tell, 0.0, 1e-8)
    yield steady(what, found, 1e-5)
    yield Check(f"{what}: lift", found.coefficients.lift, 0.0, 1e-5, _SYMMETRY)
    yield Check(f"{what}: drag", found.coefficients.drag, 0.00819, 0.05, _STRAIGHT)


def _turbulent_flow(
    context: Context, data: Path, full: bool, tell: Tell, alpha: float, drop: float
) -> tuple[str, Settled]:
    """Return the flow at an angle on the finest of the meshes, and its name; ``drop`` is as in `family`."""
    sizes = ("113-33", "225-65")[: 2 if full else 1]
    cases = {f"turbulent, {alpha:g} degrees, {size}": turbulent_airfoil(data, size, alpha) for size in sizes}
    found = family(context, tell, cases, 32, drop)
    return f"NACA 0012 turbulent, {alpha:g} degrees, {sizes[-1]}", found[-1]


class AirfoilsVerification(Published):
    """NACA 0012 in four flows; ``--full``: finer meshes, with limits, and turbulent flow at 0 degrees."""

    title = "airfoils: NACA 0012 at Mach 0.5 and 0.8, laminar, and turbulent (published values, --data)"
    groups = {  # noqa: RUF012
        "without friction, Mach 0.5": _subsonic,
        "without friction, Mach 0.5, a vortex far away": _vortex,
        "turbulent": _turbulent,
        "turbulent, 0 degrees": _turbulent_straight,
        "laminar": _laminar,
        "without friction, Mach 0.8": _transonic,
    }
