"""The benchmark of flow on edges: the parts of a step in the cavity of tetrahedra, on small and large meshes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np

from fluxloom.cli.runs.summary import loop_rows
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.plan.lanes import ragged_maps
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.report import LoopReport
from fluxloom.dsl.tune.search import tune
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.solvers.edges.transport import EdgeTransport
from fluxloom_lab.bench.base import Record, Tell, count_gpus, device_name
from fluxloom_lab.bench.flows.edge_flow_cavity import Cavity, EdgeFlowOptions, cavities, cavity_flow
from fluxloom_lab.bench.rounds import profiled

__all__ = ["EdgeFlowBench"]

STEPS, ROUNDS = 5, 3
_DIFFUSIVITY = 1e-3

RECIPES: Mapping[str, Preconditioner] = MappingProxyType(
    {"jacobi": Jacobi(), "smoothed_aggregation": SmoothedAggregation()}
)
"""Of the pressure."""

MODELS = ("flow", "transport")

Told = Callable[[str], object]
Row = dict[str, Any]


@dataclass(eq=False)
class _Subject:
    """What is timed: a step that tells when a part is done and returns iterations, what runs, and its values."""

    model: str
    preconditioner: str
    tuned: bool
    cavity: Cavity
    step: Callable[[Told], int]
    chains: Callable[[], Sequence[Chain]]
    values: Sequence[Dat]
    setup: float = 0.0
    tuning: float = 0.0
    times: list[dict[str, float]] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    loops: list[LoopReport] = field(default_factory=list)

    def reports(self) -> list[LoopReport]:
        """Return the counters of all loops."""
        return [report for chain in self.chains() for report in chain.reports()]

    @property
    def seconds(self) -> float:
        """Median of a step."""
        return median(sum(parts.values()) for parts in self.times)


class EdgeFlowBench:
    """Steps of `EdgeFlow` in the unit cube under a lid, Re = 100, from rest; ``--model transport``: `EdgeTransport`.

    The numbers of points are those of a published study, and so are the steps; with the tolerances of the pressure
    that the record names, conjugate gradients with diagonal scaling take about as many iterations as there. The
    alternatives (preconditioners, with and without tuning) take turns round by round. ``in`` and ``out`` are what it
    would add to a step if velocity and pressure came from the host and went back to it.
    """

    title = "Flow on the edges of tetrahedra: the parts of a step, in bytes and seconds"
    options = EdgeFlowOptions

    def run(self, options: EdgeFlowOptions, tell: Tell) -> Record:
        """Measure."""
        names, model = _preconditioners(options), options.model or "flow"
        if model not in MODELS:
            raise CaseError(f"--model {model!r}{did_you_mean(model, MODELS)} (allowed: {', '.join(MODELS)})")
        context = options.context(tuning=not options.tune)
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: there is nothing to time")
        meter = meter_for(context.device, context.threads)
        copies = [meter.measure(3).copy_gbs]
        subjects: list[_Subject] = []
        rows: list[tuple[Row, Row]] = []
        for make in cavities(options, context):
            cavity = make()
            tell(f"{cavity.mesh.points.size:,} points, {cavity.edges:,} edges, steps of {cavity.dt:.3g} on {context!r}")
            subjects = _subjects(cavity, model, names, options.tune, tell)
            here = [meter.measure(3).copy_gbs]
            for number in range(options.rounds or ROUNDS):
                for subject in subjects:
                    seconds = _round(context, subject, options.iterations or STEPS)
                    tell(f"round {number + 1}: {_name(subject)}: {1e3 * seconds:.4g} ms a step")
                here.append(meter.measure(3).copy_gbs)
            rows += [_rows(context, subject, median(here)) for subject in subjects]
            copies += here
        best = min(subjects, key=lambda subject: subject.seconds)
        return Record(
            case="edge_flow", model=f"{model}, linear tetrahedra", device=context.device.name,
            device_name=device_name(context), precision="float64", gpus=count_gpus(context),
            sizes={"n": best.cavity.mesh.points.size, "edges": best.cavity.edges}, copy_gbs=median(copies),
            seconds=best.seconds, loops=loop_rows(best.loops, median(copies)), command=options.command,
            metrics={
                "threads": context.threads, "best": _name(best), "parts": [times for times, _ in rows],
                "work": [work for _, work in rows],
            },
        )  # fmt: skip


def _preconditioners(options: EdgeFlowOptions) -> tuple[str, ...]:
    """Return the names of those wanted.

    Raises
    ------
    CaseError
        If one is none.
    """
    names = tuple(word.strip() for word in (options.preconditioner or "jacobi").split(","))
    for name in names:
        if name not in RECIPES:
            raise CaseError(f"--preconditioner {name!r}{did_you_mean(name, RECIPES)} (allowed: {', '.join(RECIPES)})")
    if options.model == "transport" and options.preconditioner:
        raise CaseError("--model transport solves no system: leave out --preconditioner")
    return names


def _subjects(cavity: Cavity, model: str, names: Sequence[str], tuned: bool, tell: Tell) -> list[_Subject]:
    """Return the alternatives for one mesh, compiled and with a step made."""
    found = []
    for name in names:
        for now in (False, True) if tuned else (False,):
            start = time.perf_counter()
            subject = _flow(cavity, name, now) if model == "flow" else _transport(cavity, now)
            subject.step(_nobody)
            subject.setup = time.perf_counter() - start
            if now:
                _tune(subject, tell)
            subject.step(_nobody)
            found.append(subject)
    return found


def _flow(cavity: Cavity, name: str, tuned: bool) -> _Subject:
    flow = cavity_flow(cavity, RECIPES[name])

    def step(told: Told) -> int:
        return flow.step(cavity.dt, told).require("the pressure of the cavity").iterations

    return _Subject("flow", name, tuned, cavity, step, lambda: flow.chains, (flow.u, flow.p))


def _transport(cavity: Cavity, tuned: bool) -> _Subject:
    """Return a scalar in a vortex, whose coefficients are made anew in each step, as those of a flow would be."""
    scalar = EdgeTransport(cavity.mesh, _vortex, _DIFFUSIVITY, operators=cavity.operators, bounded=False)
    scalar.initialise(lambda p: np.exp(-50.0 * ((p - [0.5, 0.75, 0.5]) ** 2).sum(axis=1)))
    chains = dict(zip(("coefficients", "stages"), scalar.chains, strict=True))
    scalar.step_length.value = cavity.dt

    def step(told: Told) -> int:
        for name, chain in chains.items():
            chain()
            told(name)
        return 0

    return _Subject("transport", "", tuned, cavity, step, lambda: scalar.chains, (scalar.u, scalar.c))


def _vortex(p: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the velocity of a rotation about the middle."""
    return np.stack([0.5 - p[:, 1], p[:, 0] - 0.5, np.zeros(len(p))], axis=1)


def _tune(subject: _Subject, tell: Tell) -> None:
    """Time the schedules of all ragged loops, and run with the fastest; nothing is recorded."""
    start = time.perf_counter()
    loops = unique(loop for chain in subject.chains() for loop in chain.loops)
    tune([loop for loop in loops if ragged_maps(loop.bound)], method="screen", record=False, tell=tell)
    for chain in subject.chains():
        chain.build()
    subject.tuning = time.perf_counter() - start


def _round(context: Context, subject: _Subject, steps: int) -> float:
    """Make steps, keep the time of each part, and return the mean of a step."""
    for _ in range(steps):
        parts: dict[str, float] = {}
        context.synchronize()
        last, busy = time.perf_counter(), time.process_time()

        def told(name: str, parts: dict[str, float] = parts) -> None:
            nonlocal last
            context.synchronize()
            now = time.perf_counter()
            parts[name], last = now - last, now

        subject.iterations.append(subject.step(told))
        subject.busy.append(time.process_time() - busy)
        subject.times.append(parts)
    return sum(sum(parts.values()) for parts in subject.times[-steps:]) / steps


def _copies(context: Context, subject: _Subject) -> tuple[float, float]:
    """Return the median seconds to bring the values to the device, and to fetch them."""
    taken = []
    for _ in range(ROUNDS):
        context.synchronize()
        start = time.perf_counter()
        held = [dat.read() for dat in subject.values]
        middle = time.perf_counter()
        for dat, values in zip(subject.values, held, strict=True):
            dat.write(values)
        context.synchronize()
        taken.append((time.perf_counter() - middle, middle - start))
    return median(item[0] for item in taken), median(item[1] for item in taken)


def _rows(context: Context, subject: _Subject, copy: float) -> tuple[Row, Row]:
    """Return the times of the parts of a step of one alternative, and what it did."""
    cavity = subject.cavity
    sent, fetched = _copies(context, subject)
    done = profiled(context, lambda: subject.step(_nobody), subject.reports)
    subject.loops = [item for item in done if item.calls]
    moved = sum(item.useful_bytes * item.calls for item in subject.loops)
    rate = 1e-9 * moved / subject.seconds
    parts = {f"{name}_ms": 1e3 * median(each[name] for each in subject.times) for name in subject.times[0]}
    totals = [sum(each.values()) for each in subject.times]
    name = {"nodes": cavity.name, "way": _name(subject)}
    times = {
        "iterations": median(subject.iterations), "in_ms": 1e3 * sent, **parts, "out_ms": 1e3 * fetched,
        "step_ms": 1e3 * subject.seconds, "best_ms": 1e3 * min(totals), "cpu_ms": 1e3 * median(subject.busy),
    }  # fmt: skip
    work = {
        "points": cavity.mesh.points.size, "edges": cavity.edges, "dt": cavity.dt, "rtol": cavity.rtol,
        "moved_mb": 1e-6 * moved, "gbs": rate, "percent_of_copy": 100.0 * rate / copy, "setup_s": subject.setup,
        "tuning_s": subject.tuning, "layout": type(cavity.operators.entries.layout).__name__.lower(),
    }  # fmt: skip
    return name | times, name | work


def _name(subject: _Subject) -> str:
    """Return the name of an alternative."""
    return (subject.preconditioner or subject.model) + (", tuned" if subject.tuned else "")


def _nobody(part: str) -> None:
    """Tell nobody."""
