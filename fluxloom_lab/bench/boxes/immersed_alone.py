"""The immersed boundary by itself: interpolation, forces and spreading of more and more markers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fluxloom.dsl.context import Context
from fluxloom.lbm.immersed import ImmersedBoundary, Plane
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom.linalg.direct.calls import sequence
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.boxes.lbm_choice import LatticeOptions
from fluxloom_lab.problems.immersed_bodies import nested

__all__ = ["CARRIERS", "alone", "part_of_step"]

CARRIERS = {"rows": False, "addresses": True}
"""How values get from cells to markers and back: products with matrices found once, or at computed addresses."""

_VISCOSITY = 0.05
_PARTS = {"interpolate": "interpolation", "spread": "spreading"}


def part_of_step(name: str) -> str:
    """Return what a step of the boundary belongs to, by its name."""
    if name.startswith("force_marker"):
        return "forcing"
    return _PARTS.get(name, "other")


def alone(
    context: Context, dimensions: int, counts: Sequence[int], precision: str, options: LatticeOptions, tell: Tell
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield a row for each number of markers and each way to carry values, as it is measured.

    ``interpolation_us``, ``forcing_us`` and ``spreading_us`` are times of these parts called one after the other,
    ``other_us`` that of clearing forces and finding what arrives at the cells around, ``redo_us`` that of the step that
    is done again there; ``whole_us`` is the time of all of them as a step runs them.

    Parameters
    ----------
    dimensions
        Two (circles around each other) or three (spheres).
    counts
        Numbers of markers.
    """
    for count in counts:
        for carrier, scattered in CARRIERS.items():
            row = _measured(context, dimensions, count, precision, options, scattered=scattered)
            tell(
                f"{row['markers']} markers in {dimensions}D by {carrier}: interpolation {row['interpolation_us']:.4g}, "
                f"forces {row['forcing_us']:.4g}, spreading {row['spreading_us']:.4g}, all {row['whole_us']:.4g} us"
            )
            yield {"dimensions": dimensions, "carrier": carrier} | row


def _measured(
    context: Context, dimensions: int, count: int, precision: str, options: LatticeOptions, *, scattered: bool
) -> dict[str, Any]:  # fmt: skip
    """Return the times of one number of markers."""
    shape, body = nested(count, dimensions)
    flow = LatticeBoltzmann(
        context, shape, viscosity=_VISCOSITY, lattice=D2Q9 if dimensions == 2 else D3Q19, dtype=precision,
        schedule=options.schedule,
    )  # fmt: skip
    # What weights are is the same to a clock; those of a plane need no large system.
    boundary = ImmersedBoundary([body], weights=Plane(), scattered=scattered)
    flow.immerse(boundary)
    flow.initialise(1.0, (0.0,) * (dimensions - 1) + (0.05,))
    before, after = list(boundary.before(0)), list(boundary.after(0))
    whole = sequence([*before, *after], "immersed")
    for _ in range(3):
        whole()  # compiled, captured, replayed
    watch = Stopwatch(options.rounds or 5, wait=context.synchronize)
    steps = [*before, *after]
    *each, all_of_them = watch.race([*steps, whole])
    found: dict[str, float] = dict.fromkeys(("interpolation", "forcing", "spreading", "other", "redo"), 0.0)
    for place, (step, seconds) in enumerate(zip(steps, each, strict=True)):
        found["redo" if place >= len(before) else part_of_step(getattr(step, "name", ""))] += 1e6 * seconds
    return {
        "markers": body.markers.count, "cells": flow.cells, "support_cells": len(boundary.cells),
        **{f"{name}_us": value for name, value in found.items()}, "whole_us": 1e6 * all_of_them,
        "ns_per_marker": 1e9 * all_of_them / body.markers.count,
    }  # fmt: skip
