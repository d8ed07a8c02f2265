"""Lattice Boltzmann flows with immersed bodies, beside the same flows without them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.lbm.immersed import ImmersedBoundary, OnDevice, OnHost
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LatticeOptions, ideal_mlups
from fluxloom_lab.bench.boxes.lbm_flow import SPEED, lattice_flow
from fluxloom_lab.bench.rounds import Rounds, measure_rounds
from fluxloom_lab.problems.immersed_bodies import Filling, filling

__all__ = ["FRACTIONS", "MODES", "Coupled", "coupled"]

FRACTIONS = (0.005, 0.01)
"""Shares of the box that bodies fill: those of the thesis."""

MODES = ("local", "field")
"""How a flow takes up the force: a second step around the bodies, or a loop that reads it everywhere."""

PIPELINES = {"local, host": OnHost(), "local, host after device": OnHost(overlap=False)}
"""Where markers are worked on, beside the device of the flow, and the name of that mode: for devices of work items."""


@dataclass(frozen=True)
class Coupled:
    """Rounds of one flow, and its row of the table."""

    rounds: Rounds
    row: dict[str, Any]


def coupled(
    context: Context, choice: Choice, shapes: Sequence[tuple[int, ...]], count: int, rounds: int,
    options: LatticeOptions, tell: Tell,
) -> Iterator[Coupled]:  # fmt: skip
    """Yield a row for each box without bodies, and one for each share of them and each mode, as it is measured.

    ``ratio`` is the speed over that of the same box without bodies. A mode that the solver refuses has its error.

    Parameters
    ----------
    shapes
        Boxes, slowest axis first.
    count, rounds
        Steps a round, and timed rounds.
    """
    for shape in shapes:
        pure = _timed(context, choice, shape, None, "", count, rounds, options, tell)
        yield pure
        for fraction in FRACTIONS:
            bodies = filling(shape, fraction, min(FRACTIONS))
            for mode in _modes(choice, context):
                try:
                    done = _timed(context, choice, shape, bodies, mode, count, rounds, options, tell)
                except FluxloomError as error:
                    row = _about(shape, bodies, mode) | {"error": str(error).splitlines()[0]}
                    tell(f"{mode}, {100 * fraction:g} %: {row['error']}")
                    found = Coupled(pure.rounds, row)
                else:
                    ratio = done.row["mlups"] / pure.row["mlups"]
                    found = Coupled(done.rounds, done.row | {"ratio": ratio})
                yield found
                gc.collect()


def _modes(choice: Choice, context: Context) -> tuple[str, ...]:
    """Return the modes that a way of streaming has: one in place overwrites what a step would be done again from.

    Where the flow is not on the host, the host may work on the markers.
    """
    if choice.streaming == "in-place":
        return MODES[1:]
    return (*MODES, *PIPELINES) if context.device.items else MODES


def _about(shape: tuple[int, ...], bodies: Filling | None, mode: str) -> dict[str, Any]:
    """Return the columns that say what was measured."""
    return {
        "shape": list(reversed(shape)), "nodes": prod(shape), "mode": mode or "no bodies",
        "solid_percent": 100 * bodies.fraction if bodies else 0.0, "bodies": len(bodies.bodies) if bodies else 0,
        "diameter": bodies.diameter if bodies else None, "markers": bodies.markers if bodies else 0,
    }  # fmt: skip


def _timed(
    context: Context, choice: Choice, shape: tuple[int, ...], bodies: Filling | None, mode: str, count: int,
    rounds: int, options: LatticeOptions, tell: Tell,
) -> Coupled:  # fmt: skip
    """Time one flow."""
    about = _about(shape, bodies, mode)
    named = {"force": "field"} if mode == "field" else {}
    flow = lattice_flow(context, replace(choice, **named), shape, options.schedule)
    support, boundary = 0, None
    if bodies is not None:
        boundary = ImmersedBoundary(bodies.bodies, pipeline=PIPELINES.get(mode, OnDevice()))
        flow.immerse(boundary)
        support = len(boundary.cells)
    flow.initialise(1.0, (0.0,) * (len(shape) - 1) + (SPEED,))
    tell(
        f"{' x '.join(str(n) for n in about['shape'])}, {about['mode']}, {about['bodies']} bodies, "
        f"{about['markers']} markers"
    )
    flow.step(count)
    _host_times(boundary)  # those of the first steps, which compile, are forgotten
    timed = measure_rounds(
        context, flow.step, flow.reports, count, rounds, tell,
        lambda seconds: f"{1e-6 * flow.cells * count / seconds:,.1f} MLUPS",
    )  # fmt: skip
    flow.check_finite()
    mlups = 1e-6 * flow.cells * count / timed.seconds
    ideal = ideal_mlups(timed.copy_gbs, choice) if timed.copy_gbs else None
    return Coupled(timed, about | {
        "support_percent": 100 * support / flow.cells, "mlups": mlups, "ratio": 1.0,
        "percent_of_copy": 100 * mlups / ideal if ideal else None, "ms_per_step": 1e3 * timed.seconds / count,
        "copy_gbs": timed.copy_gbs, **_host_times(boundary),
    })  # fmt: skip


def _host_times(boundary: ImmersedBoundary | None) -> dict[str, float]:
    """Return what the host has spent on markers since the last call, in ms a step, by part, if it did that work."""
    if boundary is None or isinstance(boundary.pipeline, OnDevice):
        return {}
    return {f"host_{part}_ms": 1e3 * seconds for part, seconds in boundary.times(anew=True).items()}
