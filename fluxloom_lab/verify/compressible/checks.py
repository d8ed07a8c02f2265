"""Compressible flow: uniform flow, orders, shocks, walls, and turned meshes; airfoils in the long form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log2
from time import perf_counter

import numpy as np
import numpy.typing as npt

from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.gas import oblique_shock
from fluxloom.fv.gradients.limiters import BarthJespersen, Venkatakrishnan
from fluxloom_lab.exact.riemann import SOD
from fluxloom_lab.problems.compressible_cases import (
    KINDS,
    Tube,
    change_of_uniform_flow,
    manufactured,
    noise_at_rest,
    turned_flow,
    vortex,
)
from fluxloom_lab.verify.base import Check, FullOptions, Tell
from fluxloom_lab.verify.compressible.airfoil import airfoil_checks
from fluxloom_lab.verify.compressible.devices import device_checks
from fluxloom_lab.verify.compressible.steady import Ramp, couette, nozzle, ringleb

__all__ = ["CompressibleVerification"]

Array = npt.NDArray[np.float64]
Group = Callable[[Context, bool], Iterator[Check]]

_UNIFORM = "the flux of one state is that of Euler"
_REST = "nothing drives it"
_TURNED = "the equations know no axes"
_VORTEX = "Shu 1997, exact"
_WAVES = "method of manufactured solutions: Roache 2002"
_SOD = "exact: Toro 2009, ch. 4"
_WEDGE = "oblique shock: NACA 1135, 1953"
_RINGLEB = "Ringleb 1940, exact"
_NOZZLE = "one dimension: Anderson 2003, sec. 5.4"
_COUETTE = "White 2006, sec. 3-2, exact"


class CompressibleVerification:
    """Everything small with a known answer; ``--full``: finer meshes, perturbed ones in space, an airfoil."""

    title = "compressible: uniform flow, orders, a shock tube, a ramp, a nozzle, walls, turned meshes"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done, and tell how long each group took."""
        context = options.context()
        for what, group in (_GROUPS | (_LONG if options.full else {})).items():
            tell(what)
            start = perf_counter()
            yield from group(context, options.full)
            tell(f"{what}: {perf_counter() - start:.1f} s")


def _order(what: str, coarse: float, fine: float, tolerance: float, source: str, *, wanted: float = 2.0) -> Check:
    """Check the order of two errors, of which the second is that of half the size; a higher order is as good."""
    order = log2(coarse / fine)
    found = f"{source}; errors {coarse:.3g} and {fine:.3g}, order {order:.2f}"
    return Check(f"{what}: order, {wanted:g} at most counted", min(order, wanted), wanted, tolerance, found)


def _uniform(context: Context, full: bool) -> Iterator[Check]:
    del full
    for kind in KINDS:
        yield Check(f"uniform flow, {kind}: change", change_of_uniform_flow(context, kind), 0.0, 2e-14, _UNIFORM)


def _rest(context: Context, full: bool) -> Iterator[Check]:
    """Check the kinds of cells with enough neighbours: slopes of simplices need a limiter that acts on noise too."""
    del full
    for kind in ("quad", "triangle", "hexahedron", "prism", "pyramid"):
        yield Check(f"gas at rest, {kind}: growth of noise", noise_at_rest(context, kind), 0.0, 1.5, _REST)


def _turned(context: Context, full: bool) -> Iterator[Check]:
    del full
    strict = Venkatakrishnan(smoothness=0.1)  # so that it acts everywhere
    for angle, limiter in ((30.0, None), (37.0, strict), (37.0, BarthJespersen())):
        what = f"mesh turned by {angle:g} degrees, limiter {strategy_name(limiter)}: difference"
        yield Check(what, turned_flow(context, angle, limiter), 0.0, 1e-12, _TURNED)


def _vortex(context: Context, full: bool) -> Iterator[Check]:
    n = 64 if full else 32
    for kind, tolerance in (("quad", 0.05), ("triangle", 0.1)):
        coarse, fine = vortex(context, kind, n), vortex(context, kind, 2 * n)
        yield Check(f"vortex, {kind}: error of the density", fine, 0.0, 2.5e-4, _VORTEX)
        yield _order(f"vortex, {kind}", coarse, fine, tolerance, _VORTEX)


_SIZES = {
    "quad": 16, "triangle": 16, "hexahedron": 8, "tetra": 5, "prism": 6, "pyramid": 5, "polygon": 16, "polyhedron": 8
}  # fmt: skip


def _waves(context: Context, full: bool) -> Iterator[Check]:
    """Check the order on every kind of cell; small cells of perturbed tetrahedra take long, so they are few."""
    for kind in KINDS:
        n = _SIZES[kind]
        for perturb in (0.0, 0.1 if kind == "tetra" else 0.2):
            if perturb and not full and kind in ("tetra", "pyramid", "polyhedron"):
                continue
            what = f"manufactured, {kind}{', perturbed' if perturb else ''}"
            coarse, fine = (_mean(manufactured(context, kind, m, perturb)) for m in (n, 2 * n))
            yield _order(what, coarse, fine, 0.1, _WAVES)


def _eddies(context: Context, full: bool) -> Iterator[Check]:
    """Check with the model of turbulence, whose variable is carried with first order."""
    for kind in KINDS if full else ("quad", "triangle", "hexahedron"):
        n = _SIZES[kind]
        coarse, fine = (manufactured(context, kind, m, eddy=4.0) for m in (n, 2 * n))
        yield _order(f"manufactured, eddies, {kind}: flow", _mean(coarse[:-1]), _mean(fine[:-1]), 0.1, _WAVES)
        away = 0.35 if kind == "polyhedron" else 0.2  # errors of 8, 12, 16 and 24 cells: 0.0134, 0.0102, 0.0083, 0.0060
        yield _order(f"manufactured, eddies, {kind}: the model", coarse[-1], fine[-1], away, _WAVES, wanted=1.0)


def _mean(errors: Array) -> float:
    return float(np.sqrt((errors**2).mean()))


def _tube(context: Context, full: bool) -> Iterator[Check]:
    n = 400 if full else 200
    coarse, fine = Tube.run(context, n), Tube.run(context, 2 * n)
    middle = {"p*": SOD.pressure, "u*": SOD.velocity, "rho*L": SOD.density(SOD.left), "rho*R": SOD.density(SOD.right)}
    for name, value in fine.plateaus():
        yield Check(f"Sod's tube: {name}", value, middle[name], 5e-4, _SOD)
    names = "head", "tail", "contact", "shock"
    speeds: dict[str, float] = dict(zip(names, SOD.waves(), strict=False))
    for name, value in fine.places():
        yield Check(f"Sod's tube: place of the {name}", value, 0.5 + Tube.TIME * speeds[name], 5e-3, _SOD)
    yield Check("Sod's tube: mean error of the density", fine.error, 0.0, 0.8 / n, _SOD)
    yield _order("Sod's tube", coarse.error, fine.error, 0.25, _SOD, wanted=1.0)


def _ramp(context: Context, full: bool) -> Iterator[Check]:
    for angle in (10.0, 15.0):
        exact, found = oblique_shock(2.0, angle), Ramp.run(context, 2.0, angle, 80 if full else 40)
        what = f"ramp of {angle:g} degrees at Mach 2"
        yield Check(f"{what}: angle of the shock", found.angle, exact.angle, 0.01, _WEDGE)
        yield Check(f"{what}: pressure behind it", found.pressure, exact.pressure, 0.01, _WEDGE)
        yield Check(f"{what}: Mach number behind it", found.mach, exact.mach, 0.01, _WEDGE)


def _nozzle(context: Context, full: bool) -> Iterator[Check]:
    place, exact, pressure, wanted = nozzle(context, 200 if full else 100)
    yield Check("nozzle: place of the shock", place, exact, 0.02, _NOZZLE)
    yield Check("nozzle: pressure before it", pressure, wanted, 0.01, _NOZZLE)


def _couette(context: Context, full: bool) -> Iterator[Check]:
    n = 16 if full else 8
    (coarse, _), (fine, heat) = couette(context, n), couette(context, 2 * n)
    yield _order("Couette's flow with heat: density", coarse[0], fine[0], 0.1, _COUETTE)
    yield Check("Couette's flow with heat: heat through the moving wall", heat, 1.0, 1e-3, _COUETTE)


def _ringleb(context: Context, full: bool) -> Iterator[Check]:
    n = 32 if full else 16
    coarse, fine = ringleb(context, n), ringleb(context, 2 * n)
    yield Check("Ringleb's flow: error of the density", fine[0], 0.0, 3e-4, _RINGLEB)
    yield _order("Ringleb's flow: density", coarse[0], fine[0], 0.1, _RINGLEB)


_GROUPS: dict[str, Group] = {
    "uniform flow": _uniform,
    "gas at rest": _rest,
    "turned meshes": _turned,
    "a vortex": _vortex,
    "manufactured solutions": _waves,
    "manufactured solutions with eddies": _eddies,
    "Sod's tube": _tube,
    "a ramp": _ramp,
    "a nozzle": _nozzle,
    "Couette's flow": _couette,
    "Ringleb's flow": _ringleb,
}

_LONG: dict[str, Group] = {"an airfoil": airfoil_checks, "forces on two devices": device_checks}
