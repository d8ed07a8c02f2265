"""The benchmark of fast Poisson solvers: a solve on a box, its parts, and a solver as users write it with a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.poisson import Plan
from fluxloom.machine.ranks import rank_devices_of
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom_lab.bench.base import Record, Tell, box_from_text
from fluxloom_lab.bench.linear.poisson_ranks import DIVISIONS, divided
from fluxloom_lab.bench.options import Ranked, Real, cells_option, rounds_option
from fluxloom_lab.bench.rounds import summed
from fluxloom_lab.options import option
from fluxloom_lab.peers.poisson_peers import usual_solver
from fluxloom_lab.problems.boxes import usual_side

__all__ = ["MODELS", "Model", "PoissonBench"]

ROUNDS = 7
_SIDE, _SIDE_PROCESSOR = 512, 256


@dataclass(frozen=True)
class Model:
    """Boundary conditions along the first axis and along the others, and where the unknowns are."""

    first: str
    others: str
    centring: str = "cell"

    def sides(self, dimensions: int) -> tuple[str, ...]:
        """Return the condition of each axis."""
        return (self.first, *(self.others,) * (dimensions - 1))


MODELS: Mapping[str, Model] = {
    "channel": Model("neumann", "periodic"),
    "neumann": Model("neumann", "neumann"),
    "dirichlet": Model("dirichlet", "dirichlet"),
    "nodes": Model("dirichlet", "dirichlet", "node"),
    "periodic": Model("periodic", "periodic"),
}
"""What is solved, by name."""


@dataclass(frozen=True)
class PoissonOptions(Ranked, Real):
    """Options of the benchmark ``poisson``."""

    cells: str = cells_option("Size of the box: N, NX,NY or NX,NY,NZ.")
    rounds: int = rounds_option()
    model: str = option("", metavar="NAMES", help="Boundary conditions, several with commas.")
    methods: str = option("", metavar="NAMES", help="What is timed: ways of division on several ranks.")


class PoissonBench:
    """Time of a solve of Poisson's equation on a box, in double or single precision.

    ``--model`` names the boundary conditions (several with commas), ``--cells NX,NY,NZ`` (or two numbers, or one) the
    unknowns. On several ranks the box is divided: ``--methods slabs,pencils`` says how (both by default), and no
    library is compared with.
    """

    title = "Fast Poisson solvers: transforms and lines, beside a solver written with the device's library"
    options = PoissonOptions

    def run(self, options: PoissonOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.native_context()
        dtype = options.real_type
        shape = box_from_text(options.cells, usual_side(context, _SIDE_PROCESSOR, _SIDE_PROCESSOR, _SIDE), True)
        meter = meter_for(context.device, context.threads)
        copies, found = [summed(context.comm, meter.measure(3).copy_gbs)], {}
        divisions = _divisions(context, options.methods)
        for name, division in product(_models(options.model), divisions):
            model, rounds = MODELS[name], options.rounds or ROUNDS
            name = f"{name} {division}" if division else name
            if context.distributed:
                found[name] = divided(context, model.sides(len(shape)), model.centring, shape, dtype, division, rounds)
            else:
                found[name] = _measure(context, model, shape, dtype, rounds)
            copies.append(summed(context.comm, meter.measure(3).copy_gbs))
            found[name]["gbs"] = 2e-9 * prod(shape) * np.dtype(dtype).itemsize / found[name]["seconds_per_solve"]
            found[name]["percent_of_copy"] = 100.0 * found[name]["gbs"] / copies[-1]
            tell(_line(name, found[name]))
        first, crew = next(iter(found.values())), rank_devices_of(context)
        return Record(
            case="poisson",
            model=",".join(found),
            **crew.place,
            precision=dtype,
            sizes={"cells": prod(shape)},
            copy_gbs=median(copies),
            seconds=first["seconds_per_solve"],
            metrics={"shape": list(shape), "threads": context.threads, **found},
            loops=[],
            command=options.command,
        )



def _divisions(context: Context, text: str) -> Sequence[str]:
    """Return how a box is divided, each in turn; an empty name on one rank."""
    if not context.distributed:
        if text:
            raise CaseError("--methods says how a box is divided among ranks: start several with --ranks or mpiexec")
        return [""]
    names: list[str] = [word.strip() for word in text.split(",")] if text else list(DIVISIONS)
    for name in names:
        if name not in DIVISIONS:
            raise CaseError(f"--methods {name!r}{did_you_mean(name, DIVISIONS)} (allowed: {', '.join(DIVISIONS)})")
    return names


def _models(text: str) -> list[str]:
    names = [word.strip() for word in (text or "channel").split(",")]
    for name in names:
        if name not in MODELS:
            raise CaseError(f"--model {name!r}{did_you_mean(name, MODELS)} (allowed: {', '.join(MODELS)})")
    return names


def right_hand_side(shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """Return random values without a mean, so that every problem has a solution."""
    values = np.random.default_rng(5).standard_normal(shape)
    return (values - values.mean()).astype(dtype)


def _measure(context: Context, model: Model, shape: tuple[int, ...], dtype: str, rounds: int) -> dict[str, Any]:
    """Return the times of one problem: whole, by parts, and of the usual library."""
    spacing = 1.0 / shape[0]
    sides = model.sides(len(shape))
    plan = Plan(shape, spacing, sides, centring=model.centring, dtype=dtype, device=context)
    device = context.device
    values = right_hand_side(shape, dtype)
    f, u = DeviceArray.of(device, values), DeviceArray.zeros(device, shape, dtype)
    steps = plan.steps(f, u)
    for _ in range(3):
        steps()  # the second run captures, the third replays
    runs: dict[str, Run] = {"ours": steps}
    peer = usual_solver(context, sides, model.centring, values, spacing)
    if peer is not None:
        runs["peer"] = peer.run
    watch = Stopwatch(rounds, wait=device.synchronize)
    seconds = dict(zip(runs, watch.race(list(runs.values())), strict=True))
    found: dict[str, Any] = {"seconds_per_solve": seconds["ours"], "plan": plan.describe()}
    if peer is not None:
        found |= {
            "peer": peer.name,
            "peer_seconds": seconds["peer"],
            "times_faster_than_peer": seconds["peer"] / seconds["ours"],
            "off_peer": float(np.abs(u.host() - peer.solution()).max() / np.abs(peer.solution()).max()),
        }
    return found | {"parts_ms": _parts(context, steps)}


def _parts(context: Context, steps: Steps, runs: int = 5) -> dict[str, float]:
    """Return the milliseconds of each part of a solve; asking for them costs something."""
    context.profile = True
    try:
        steps.reset()
        for _ in range(runs):
            steps()
        return {name: 1e3 * seconds / runs for name, seconds in steps.seconds.items()}
    finally:
        context.profile = False


def _line(name: str, row: dict[str, Any]) -> str:
    text = f"{name}: {1e3 * row['seconds_per_solve']:.4g} ms, {row['percent_of_copy']:.3g} % of one copy"
    if "peer" in row:
        text += f"; {row['peer']} {1e3 * row['peer_seconds']:.4g} ms: {row['times_faster_than_peer']:.3g} times"
    return text
