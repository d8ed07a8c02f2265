"""Incompressible flow: order in space and time, conservation, and the flow around a cylinder."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log2

from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, ProjectionScheme, RungeKutta
from fluxloom_lab.problems.cylinder import CylinderFlow
from fluxloom_lab.problems.incompressible_cases import decaying_vortices, energy_drift, identities, shear
from fluxloom_lab.verify.base import Check, FullOptions, Tell

__all__ = ["IncompressibleVerification"]

_TAYLOR = "Taylor 1923"
_DISCRETE = "exact solution of the discrete equations"
_SYMMETRY = "Verstappen and Veldman 2003"
_DAMPED = "fluxloom.fv.incompressible.linear_operators, shares"
_STEADY = "Schäfer and Turek 1996, 2D-1; digits: Nabh 1998"
_VORTICES = "Schäfer and Turek 1996, 2D-2; digits: featflow.de"
_NEARLY_STILL = 1e-5
_SCHEMES: tuple[tuple[ProjectionScheme, int], ...] = ((AdamsBashforth(), 2), (RungeKutta(), 3))


class IncompressibleVerification:
    """Operators, order, energy, a cylinder in steady flow; ``--full``: finer, and with vortices behind it."""

    title = "incompressible: operators, order in space and time, energy, a cylinder in a channel"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""

        def context() -> Context:
            return Context(options.device, threads=options.threads)

        tell("identities of the operators")
        for name, value in identities(context()):
            yield Check(name, value, 0.0, 1e-12, _SYMMETRY)
        yield from _orders(context(), tell)
        yield from _energy(context(), tell)
        yield from _steady(context(), (14, 28, 56) if options.full else (8, 16), tell)
        if options.full:
            yield from _vortices(context(), tell)


def _orders(context: Context, tell: Tell) -> Iterator[Check]:
    """Check the order in space and time."""
    for scheme, order in _SCHEMES:
        name = strategy_name(scheme)
        tell(f"decaying vortices and shear, {name}")
        first, second = decaying_vortices(context, 32, scheme), decaying_vortices(context, 64, scheme)
        yield Check(f"vortices, {name}: root mean square error of the velocity", second, 0.0, 1e-4, _TAYLOR)
        yield Check(f"vortices, {name}: order with dt ~ h", log2(first / second), 2.0, 0.06, _TAYLOR)
        first, second = shear(context, 32, scheme), shear(context, 64, scheme)
        yield Check(f"shear, {name}: order in time", log2(first / second), float(order), 0.05, _DISCRETE)


def _energy(context: Context, tell: Tell) -> Iterator[Check]:
    """Check that without viscosity the symmetric form loses energy by the steps in time alone, the other by h^3."""
    tell("energy without viscosity")
    drifts = [energy_drift(context, steps, False) for steps in (40, 80, 160)]
    yield Check("no viscosity: part of the energy lost, 160 steps", drifts[2][0], 0.0, 2e-3, _SYMMETRY)
    # dt^2 + dt h^2: between first and second order
    orders = [log2(a / b) for (a, _), (b, _) in pairwise(drifts)]
    yield Check("no viscosity: order of the loss in dt", min(orders), 1.0, 0.4, _SYMMETRY)
    first, second = (energy_drift(context, steps, True, n) for steps, n in ((80, 12), (160, 24)))
    yield Check("no viscosity, consistent: order of the loss in h", log2(first[0] / second[0]), 3.0, 0.2, _DAMPED)
    worst = max(lost for _, lost in (*drifts, first, second))
    yield Check("no viscosity: part of the momentum lost", worst, 0.0, 1e-9, "conservation")


def _steady(context: Context, sizes: tuple[int, ...], tell: Tell) -> Iterator[Check]:
    """Check 2D-1 on the finest of some meshes; each starts from the one before."""
    field, n = None, sizes[-1]
    for size in sizes[:-1]:
        tell(f"cylinder, Re = 20, {size} cells along a quarter")
        coarse = CylinderFlow(context, size, 20.0, field)
        coarse.settle(_NEARLY_STILL)
        field = coarse.field()
    what, fine = f"cylinder, Re = 20, {n} cells along a quarter", n > 16
    tell(what)
    cylinder = CylinderFlow(context, n, 20.0, field)
    took = cylinder.settle() if fine else cylinder.settle(_NEARLY_STILL)
    tell(f"{what}: steady after a time of {took:.3g}")
    found = cylinder.steady()
    part = 0.01 if fine else 0.012
    yield Check(f"{what}: drag", found.drag, 5.57953523384, part, _STEADY)
    yield Check(f"{what}: pressure difference", found.difference, 0.11752016697, part, _STEADY)
    if fine:
        yield Check(f"{what}: lift", found.lift, 0.010618948146, part, _STEADY)


def _vortices(context: Context, tell: Tell) -> Iterator[Check]:
    """Check 2D-2; vortices that are regular on a coarse mesh begin it."""
    tell("cylinder, Re = 100, 16 cells along a quarter")
    coarse = CylinderFlow(context, 16, 100.0)
    coarse.run(6.0)
    tell("cylinder, Re = 100, 32 cells along a quarter")
    cylinder = CylinderFlow(context, 32, 100.0, coarse.field())
    cylinder.run(4.0, sample_from=2.6)
    found, what = cylinder.vortices(), "cylinder, Re = 100, 32 cells along a quarter"
    yield Check(f"{what}: Strouhal number", found.strouhal, 0.301841, 0.01, _VORTICES)
    yield Check(f"{what}: largest drag", found.drag, 3.227393, 0.01, _VORTICES)
    yield Check(f"{what}: largest lift", found.lift, 0.986571, 0.01, _VORTICES)
