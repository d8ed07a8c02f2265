"""The benchmark ``ib``: immersed boundaries by themselves, and in lattice Boltzmann flows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from statistics import median
from typing import Any

from fluxloom.cli.runs.summary import loop_rows
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom_lab.bench.base import Record, Tell, box_from_text, count_from_text, count_gpus, device_name
from fluxloom_lab.bench.boxes.immersed_alone import alone
from fluxloom_lab.bench.boxes.immersed_coupled import Coupled, coupled
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LatticeOptions, LbmOptions, choices_of
from fluxloom_lab.options import option

__all__ = ["ImmersedBench"]

PARTS = ("alone", "coupled")
ROUNDS, STEPS_CPU, STEPS_GPU = 5, 40, 200
MARKERS, MOST_MARKERS = (100, 1000, 2500, 10_000, 100_000), 1_000_000
"""Numbers of markers; the last one on a GPU, or with ``--full``. The thesis has its processors behind from 2500 on."""

PLANES = ((200, 640), (400, 1280), (800, 2560), (1400, 5120))
"""Boxes of the thesis in two dimensions, and smaller ones of the same form: ``(ny, nx)``."""

LARGE = (3072, 10_240)
"""More than thirty million nodes, for a GPU."""

CUBES, LARGE_CUBE = ((64,) * 3, (128,) * 3), (320,) * 3


@dataclass(frozen=True)
class ImmersedOptions(LatticeOptions):
    """Options of the benchmark ``ib``."""

    methods: str = option("", metavar="NAMES", help="What is timed: alone, coupled; both by default.")
    nodes: str = option("", metavar="N,...", help="Numbers of markers: 100,10k,1M.")


class ImmersedBench:
    """Times of immersed boundaries.

    ``alone``: interpolation, forces and spreading for a hundred to a million markers on circles and spheres, by
    products with matrices found once and at computed addresses. ``coupled``: updates a second of a flow without
    bodies, and with bodies that fill 0.5 and 1 per cent of the box, whose number grows with the box. ``--methods``
    names one of the two, ``--nodes`` the numbers of markers, ``--cells`` one box; ``--lattice d3q19`` makes boxes with
    spheres. The record is kept after each row, so that a run which is stopped leaves what it has measured.
    """

    title = "Immersed boundaries: by themselves, and what they cost in a lattice Boltzmann flow"
    options = ImmersedOptions

    def run(self, options: ImmersedOptions, tell: Tell) -> Record:
        """Measure."""
        parts, choice, context = _parts(options.methods), _choice(options), options.native_context()
        rounds, gpu = options.rounds or ROUNDS, bool(count_gpus(context))
        copies = [meter_for(context.device, context.threads).measure(3).copy_gbs]
        metrics: dict[str, Any] = {"threads": context.threads}
        flows: list[Coupled] = []

        def so_far() -> Record:
            return _record(context, choice, options, metrics, flows, median(copies))

        def keep() -> None:
            options.keep(_unfinished(so_far()))

        if "alone" in parts:
            counts, metrics["alone"] = _counts(options, gpu), []
            for d in (choice.velocities.dimensions,) if options.lattice else (2, 3):
                for row in alone(context, d, counts, choice.precision, options, tell):
                    metrics["alone"].append(row)
                    keep()
            copies.append(meter_for(context.device, context.threads).measure(3).copy_gbs)
        if "coupled" in parts:
            count = options.iterations or (STEPS_GPU if gpu else STEPS_CPU)
            metrics |= {"steps": count, "rounds": rounds, "coupled": []}
            for flow in coupled(context, choice, _boxes(options, choice, gpu), count, rounds, options, tell):
                flows.append(flow)
                metrics["coupled"].append(flow.row)
                copies += [flow.row["copy_gbs"]] if "error" not in flow.row else []
                keep()
        return so_far()


def _unfinished(record: Record) -> Record:
    """Return a record of some parts only, which says so."""
    return replace(record, metrics={"complete": False} | record.metrics)


def _record(
    context: Context, choice: Choice, options: ImmersedOptions, metrics: dict[str, Any], flows: list[Coupled],
    copy: float,
) -> Record:  # fmt: skip
    """Return the record; its time and loops are those of the last flow, without one of the last markers alone."""
    done = [flow for flow in flows if "error" not in flow.row]
    if done:
        seconds, sizes = done[-1].rounds.seconds, {"cells": done[-1].row["nodes"], "n": done[-1].row["markers"]}
    else:
        last = metrics["alone"][-1]
        seconds, sizes = 1e-6 * last["whole_us"], {"cells": last["cells"], "n": last["markers"]}
    return Record(
        case="ib",
        model=f"{choice.title}, immersed boundary",
        device=context.device.name,
        device_name=device_name(context),
        precision=choice.precision,
        sizes=sizes,
        copy_gbs=copy,
        seconds=seconds,
        metrics=metrics,
        loops=loop_rows(done[-1].rounds.loops, done[-1].rounds.copy_gbs) if done else [],
        command=options.command,
        gpus=count_gpus(context),
    )


def _parts(text: str) -> tuple[str, ...]:
    """Return what is to be measured."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(","))) if text else PARTS
    for name in names:
        if name not in PARTS:
            raise CaseError(f"--methods {name!r}{did_you_mean(name, PARTS)} (allowed: {', '.join(PARTS)})")
    return names


def _choice(options: ImmersedOptions) -> Choice:
    """Return the flow: D2Q9 in double precision, as in the thesis, unless something else is named."""
    choices = choices_of(LbmOptions(
        lattice=options.lattice or "D2Q9", precision=options.precision or "float64", collision=options.collision,
        streaming=options.streaming, layout=options.layout,
    ))  # fmt: skip
    if len(choices) > 1:
        raise CaseError("ib measures one flow: give one name to --lattice, --collision, --precision and --streaming")
    return choices[0]


def _counts(options: ImmersedOptions, gpu: bool) -> list[int]:
    """Return numbers of markers."""
    if not options.nodes:
        return [*MARKERS, *((MOST_MARKERS,) if gpu or options.full else ())]
    found = [count_from_text(word.strip()) for word in options.nodes.split(",")]
    if min(found) < 8:
        raise CaseError(f"--nodes {options.nodes!r}: numbers of markers, as 100,10k,1M; at least eight")
    return found


def _boxes(options: ImmersedOptions, choice: Choice, gpu: bool) -> list[tuple[int, ...]]:
    """Return the boxes of flows with bodies: the thesis', and a large one on a GPU or with ``--full``."""
    plane = choice.velocities.dimensions == 2
    if options.cells:
        shape = box_from_text(options.cells, 0, plane=plane)
        return [shape[-2:] if plane and options.cells.count(",") < 2 else shape]
    usual = list(PLANES if plane else CUBES)
    if gpu or options.full:
        return [*usual, LARGE if plane else LARGE_CUBE]
    return [shape for shape in usual if prod(shape) <= 3_000_000]
