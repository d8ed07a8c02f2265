"""Shallow water against exact solutions, a beach, and with ``--full`` two experiments in laboratories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log2

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom_lab.exact.shallow_exact import solitary_runup
from fluxloom_lab.problems.tsunami_cases import ISLAND_RUNUP, beach, dam_break, island, lake_at_rest, parabolic_basin
from fluxloom_lab.verify.base import Check, DataOptions, Tell
from fluxloom_lab.verify.tsunami_monai import monai_checks

__all__ = ["TsunamiVerification"]

_REST = 1e-13
_ROUNDING = 1e-13
_STOKER, _RITTER = "Stoker 1957, sec. 10.8", "Ritter 1892"
_THACKER = "Thacker 1981, planar motion"
_BEACH = "NTHMP benchmark 1, analytical solution, H/d = 0.019 on 1:19.85"
_WITHOUT_DISPERSION = "FUNWAVE without dispersion, as quoted in the tests of SWALS"
_ISLAND = "NTHMP benchmark 6 case A, measured (Briggs et al. 1995)"


class TsunamiVerification:
    """Water at rest, dam breaks, a parabolic basin, a beach; ``--full``: finer, a conical island, Monai Valley."""

    title = "tsunami: water at rest, dam breaks, parabolic basin, run-up on a beach, an island and in a valley"
    options = DataOptions

    def run(self, options: DataOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""

        def context() -> Context:
            return Context(options.device, threads=options.threads)

        for order in (1, 2):
            tell(f"water at rest, order {order}")
            speed, steps = lake_at_rest(context(), order, time=1.0 if options.full else 0.2)
            name = f"largest speed of water at rest round an island, {steps} steps, order {order}"
            yield Check(name, speed, 0.0, _REST, "nothing moves")
        yield from _dams(options, context, tell)
        yield from _basin(options, context, tell)
        yield from _beach(options, context, tell)
        if options.full:
            yield from _island(context, tell)
            yield from monai_checks(context, options.data, tell)


def _dams(options: DataOptions, context: Callable[[], Context], tell: Tell) -> Iterator[Check]:
    """Compare dam breaks with their exact solutions."""
    coarse = 100 if options.full else 50
    for right, source, allowed, reach in ((0.1, _STOKER, 0.011, 0.015), (0.0, _RITTER, 0.014, 0.1)):
        tell(f"dam break onto depth {right:g}, {coarse} and {2 * coarse} intervals")
        first = dam_break(context(), right, 2, coarse)
        second = dam_break(context(), right, 2, 2 * coarse)
        what = f"dam break onto depth {right:g}"
        yield Check(f"{what}: L1 error of the depth, relative", second[0], 0.0, allowed, source)
        yield Check(f"{what}: observed order (of a solution with kinks)", log2(first[0] / second[0]), 0.85, 0.3, source)
        yield Check(f"{what}: error of the front, relative", second[1], 0.0, reach, source)
        yield Check(f"{what}: mass defect", second[2], 0.0, _ROUNDING, "conservation")


def _basin(options: DataOptions, context: Callable[[], Context], tell: Tell) -> Iterator[Check]:
    """Compare the swinging water of a parabolic basin after a period."""
    coarse = 40 if options.full else 16
    tell(f"parabolic basin, {coarse} and {2 * coarse} intervals")
    first, _ = parabolic_basin(context(), 2, coarse)
    second, defect = parabolic_basin(context(), 2, 2 * coarse)
    allowed = 0.012 if options.full else 0.055
    yield Check("parabolic basin: L1 error of the depth after a period, relative", second, 0.0, allowed, _THACKER)
    yield Check("parabolic basin: observed order", log2(first / second), 1.6, 0.25, _THACKER)
    yield Check("parabolic basin: mass defect", defect, 0.0, _ROUNDING, "conservation")


def _beach(options: DataOptions, context: Callable[[], Context], tell: Tell) -> Iterator[Check]:
    """Compare the run-up of a solitary wave on a beach."""
    spacing = 0.05 if options.full else 0.1
    tell(f"solitary wave on a beach, intervals of {spacing:g} depths")
    found = beach(context(), spacing=spacing)
    law = solitary_runup(0.019, 19.85)
    allowed = 0.03 if options.full else 0.05
    yield Check("beach: run-up over depth", found.runup, law, allowed, "Synolakis 1987, eq. 4.3")
    yield Check("beach: highest profile over depth", found.runup, 0.0909, 0.07, _BEACH)
    yield Check("beach: highest surface at x/d = 9.95", found.crest, 0.02353, 0.015, _BEACH)
    yield Check("beach: time of it over sqrt(d/g)", found.arrival, 29.0, 0.02, _BEACH)
    yield Check("beach: highest surface at x/d = 0.25", found.near_crest, 0.04541, 0.02, _BEACH)
    yield Check("beach: time of it over sqrt(d/g)", found.near_arrival, 49.6, 0.02, _BEACH)
    yield Check("beach: mass defect", found.defect, 0.0, 1e-12, "conservation, with what left through the open side")


def _island(context: Callable[[], Context], tell: Tell) -> Iterator[Check]:
    """Compare the run-up round an island with that of the same equations, and all round with what was measured."""
    tell("solitary wave round a conical island")
    found = island(context())
    for angle, words, right in ((270.0, "front, where it is highest", 4.1), (90.0, "lee", 2.9)):
        yield Check(f"island: run-up at the {words}, cm", found[angle], right, 0.08, _WITHOUT_DISPERSION)
    errors = [abs(found[angle] / measured - 1.0) for angle, measured in ISLAND_RUNUP.items()]
    # Without dispersion the wave is steeper than the measured one, and the flanks get more water.
    yield Check("island: mean error of the run-up all round, relative", float(np.mean(errors)), 0.0, 0.4, _ISLAND)
