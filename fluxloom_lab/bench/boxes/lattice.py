"""The lattice Boltzmann benchmark: updates of a cell a second, beside the copy bandwidth."""

from __future__ import annotations

import gc
from statistics import median
from typing import Any

from fluxloom.cli.runs.summary import loop_rows
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.machine.ranks import rank_devices_of
from fluxloom_lab.bench.base import Record, Tell, box_from_text, count_gpus
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LbmOptions, choices_of
from fluxloom_lab.bench.boxes.lbm_measure import Measured, measure
from fluxloom_lab.bench.boxes.lbm_threads import sweep_threads
from fluxloom_lab.peers.lbm_peers import lattice_peers

__all__ = ["LbmBench"]

STEPS, ROUNDS = 100, 5
SIDE_PYTHON, SIDE_CPU = 8, 128
SIDES = {"float64": 400, "float32": 512, "float16": 512}
"""Cells along a side on a GPU: two buffers of at most 21 GB with D3Q19."""

PLANE_PYTHON, PLANE_CPU, PLANE_GPU = 16, 1536, 8192
"""Cells along a side of a plane."""


class LbmBench:
    """Rounds of steps in a box, each between two measurements of the memory.

    The first round warms up (compilation is not timed). In a periodic box a shear wave decays, and that gives
    ``viscosity_error``: how far the viscosity of the flow is from the one that was asked for. ``--walls`` makes the
    box a cavity with bodies in it.

    Several names in ``--lattice``, ``--collision``, ``--precision``, ``--streaming`` or ``--force`` make a table of
    all combinations (``sweep``), ``--full`` one of all lattices, precisions, ways of streaming and layouts.
    ``--fluid 0.1,0.3,1`` fills the box with spheres that leave these shares of it, and measures both ways of storing
    cells: all of them, and those that are fluid in a list (``fluid_mlups`` are updates of fluid cells).
    On several ranks (``--ranks cuda*4``) slabs are as even as can be, and messages are measured beside the loops,
    without them and alone. ``--peers lbmpy,xlb`` steps the same flow with other libraries, on as many threads, and
    ``--threads-sweep`` starts itself on every number of threads, close together and spread.
    """

    title = "Lattice Boltzmann: updates of a cell a second, by lattice, collision, streaming, precision and layout"
    options = LbmOptions

    def run(self, options: LbmOptions, tell: Tell) -> Record:
        """Measure."""
        context, choices = options.context(), choices_of(options)
        if context.distributed and (options.threads_sweep or options.peers):
            raise CaseError("--threads-sweep and --peers measure on one rank")
        peers = lattice_peers(options, context, choices, tell)
        if options.threads_sweep and (context.device.name != "cpu" or len(choices) > 1):
            raise CaseError("--threads-sweep measures one flow on a processor: one name an option, and --device cpu")
        count, rounds = options.iterations or STEPS, options.rounds or ROUNDS
        found, rows = _all(context, choices, count, rounds, options, tell)
        more: dict[str, Any] = {"sweep": rows} if len(choices) > 1 else {}
        if peers is not None:
            more["peers"] = peers(found, _shape(context, choices[0], options.cells), count, rounds)
        if options.threads_sweep:
            more["threads_sweep"] = sweep_threads(options, choices[0], context.threads, count, rounds, tell)
        copy, crew = median(row["copy_gbs"] for row in rows if "error" not in row), rank_devices_of(context)
        return Record(
            case="lbm",
            model=found.choice.title,
            **crew.place,
            precision=found.choice.precision,
            sizes={"cells": found.metrics["cells"]},
            copy_gbs=copy,
            seconds=found.rounds.seconds,
            metrics={key: value for key, value in found.metrics.items() if key not in ("cells", "copy_gbs")} | more,
            loops=loop_rows(found.rounds.loops, found.rounds.copy_gbs),
            command=options.command,
        )


def _all(
    context: Context, choices: list[Choice], count: int, rounds: int, options: LbmOptions, tell: Tell
) -> tuple[Measured, list[dict[str, Any]]]:  # fmt: skip
    """Return the first measured flow, and a row for each; of several flows one that is refused has its error there."""
    first: Measured | None = None
    rows: list[dict[str, Any]] = []
    for choice in choices:
        try:
            done = measure(context, choice, _shape(context, choice, options.cells), count, rounds, options, tell)
        except FluxloomError as error:
            if len(choices) == 1:
                raise
            rows.append(choice.row() | {"error": str(error).splitlines()[0]})
            tell(f"{choice.title}: {rows[-1]['error']}")
        else:
            first = first or done
            rows.append(done.row())
        gc.collect()  # two buffers of a large box fill a GPU
    if first is None:
        raise CaseError(f"lbm: none of {len(choices)} flows could be measured: {rows[0]['error']}")
    return first, rows


def _shape(context: Context, choice: Choice, text: str) -> tuple[int, ...]:
    """Return the shape of the box of a choice."""
    if choice.velocities.dimensions == 3:
        return box_from_text(text, _side(context, choice.precision))
    if text.count(",") > 1:
        raise CaseError(f"--cells {text!r}: N or NX,NY of a plane, as {choice.lattice} has it")
    gpu = bool(count_gpus(context))
    shape = box_from_text(text, PLANE_GPU if gpu else PLANE_CPU if context.device.native else PLANE_PYTHON, plane=True)
    return shape[-2:]  # one number gives as many cells along both axes


def _side(context: Context, precision: str) -> int:
    """Return the cells along a side of the default box."""
    if not context.device.native:
        return SIDE_PYTHON
    return SIDES[precision] if count_gpus(context) else SIDE_CPU
