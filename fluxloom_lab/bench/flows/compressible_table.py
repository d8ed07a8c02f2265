"""The table of the loops over faces, K1 to K10: each in every way, and what the choices are worth."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.machine.ranks import rank_devices_of
from fluxloom_lab.bench.base import Record, Tell
from fluxloom_lab.bench.flows.compressible_domain import CompressibleOptions, Domain, disturbed, domain_of, flow_on
from fluxloom_lab.bench.rounds import stopwatch
from fluxloom_lab.studies.face_loops_form import KINDS, FaceLoops, Kind, Work
from fluxloom_lab.studies.face_loops_tables import ORDERS, FaceTables, Order
from fluxloom_lab.studies.face_loops_ways import standard_works, work_of

__all__ = ["STRATEGIES", "TOLERANCE", "Timed", "measure_table"]

Array = npt.NDArray[np.float64]

STRATEGIES = {"auto": None, "atomic": "atomic", "colour": "element_colour", "gather": "gather"}
"""How races are resolved, and what a schedule calls it."""
TOLERANCE = 1e-10
"""Largest difference of two ways, over the largest number of a result."""
ROUNDS = 3
_ROUND_SECONDS, _MOST_CALLS = 0.03, 200
_PASSES = 3
_NUT = 5e-5
_ROUGH = 1e-4
"""Square of changes of pressure that are not limited, over that of the pressure."""


@dataclass(frozen=True)
class Timed:
    """A way of a loop, and what it takes; the arrays of the loop are not kept.

    Attributes
    ----------
    kind, mode, split
        Of the way.
    ran
        Strategy that it ran with.
    useful_bytes, flops
        Of a run.
    order, strategy
        Numbering, and how races were to be resolved as `STRATEGIES` says it.
    seconds
        Median of the rounds.
    """

    kind: Kind
    mode: str
    split: bool
    ran: str
    useful_bytes: int
    flops: float
    order: Order
    strategy: str
    seconds: float

    @classmethod
    def of(cls, work: Work, order: Order, strategy: str, times: Sequence[float]) -> Timed:
        """Return what a way took."""
        return cls(work.kind, work.mode, work.split, work.loops[0].strategy, work.useful_bytes, work.flops, order,
                   strategy, median(times))  # fmt: skip

    def row(self, copy_gbs: float) -> dict[str, Any]:
        """Return the row of the table of loops."""
        gbs = self.useful_bytes / self.seconds / 1e9
        return {
            "loop": self.kind.name, "what": self.kind.title, "strategy": self.ran,
            "ms": 1e3 * self.seconds, "MB": self.useful_bytes / 1e6, "MFLOP": self.flops / 1e6,
            "GB/s": gbs, "GFLOP/s": self.flops / self.seconds / 1e9,
            "% of copy": 100.0 * gbs / copy_gbs if copy_gbs else None,
        }  # fmt: skip

    def way(self, standard: float) -> dict[str, Any]:
        """Return the row of the table of ways; ``standard`` is the time of the common way in the same order."""
        return {
            "loop": self.kind.name, "order": self.order, "over": self.mode, "strategy": self.strategy,
            "runs": self.ran, "split": self.split, "ms": 1e3 * self.seconds, "gain": standard / self.seconds,
        }  # fmt: skip


def measure_table(options: CompressibleOptions, tell: Tell) -> Record:
    """Measure all loops in all ways and orders, and a stage of the flow in two passes over cells.

    Raises
    ------
    CaseError
        On several ranks, on the reference device, and for a flow of another kind.
    SolverError
        If two ways disagree.
    """
    context = options.context()
    if context.distributed:
        raise CaseError("--table kernels measures on one rank: start the benchmark without --ranks and mpiexec")
    if not context.device.native:
        raise CaseError(f"--table kernels: the device {context.device.name} runs kernels as Python: take another one")
    if options.model not in ("", "rans"):
        raise CaseError(f"--table kernels: the loops are those of --model rans, not {options.model}: leave it out")
    domain = domain_of(options, context, renumbered=False)
    assert domain.mesh is not None
    tables = FaceTables.of(domain.mesh, domain.volumes)
    tell(f"{domain.name}: {domain.cells:,} cells, {len(tables.faces):,} faces, {tables.nodes:,} nodes on {context!r}")
    table = _Table(options, domain, tables, options.rounds or ROUNDS, tell)
    for order in ORDERS:
        table.measure(order)
        gc.collect()  # the arrays of one order make room for those of the next
    stage = _stage(options, domain_of(options, context) if options.mesh else domain, table.rounds)
    tell(f"a stage in two passes over cells: {1e3 * stage:.4g} ms")
    crew, copy = rank_devices_of(context), table.copy_gbs
    metrics = {
        "threads": context.threads, "faces": len(tables.faces), "nodes": tables.nodes, "rounds": table.rounds,
        "largest_difference": table.difference, **_whole(table, stage, domain.cells),
        "kernels": [timed.row(copy) for timed in table.standard["renumbered"]],
        "renumbering": _renumbering(table), "ways": _ways(table), "not_possible": table.refused,
    }  # fmt: skip
    return Record(
        case="compressible", model="loops over faces", **crew.place,
        precision="float64", sizes={"cells": domain.cells}, copy_gbs=copy,
        seconds=sum(timed.seconds for timed in table.standard["renumbered"]), metrics=metrics, loops=(),
        command=options.command,
    )  # fmt: skip


class _Table:
    """Measures one order after another, and keeps what they took."""

    def __init__(
        self, options: CompressibleOptions, domain: Domain, tables: FaceTables, rounds: int, tell: Tell
    ) -> None:
        self.options, self.domain, self.tables, self.rounds, self.tell = options, domain, tables, rounds, tell
        self.standard: dict[str, list[Timed]] = {}
        self.ways: list[Timed] = []
        self.refused: list[dict[str, str]] = []
        self.difference = 0.0
        self._copies: list[float] = []
        self._wanted: dict[str, Array] = {}

    @property
    def copy_gbs(self) -> float:
        """Median of what the memory copies."""
        return median(self._copies)

    def measure(self, order: Order) -> None:
        """Compare and time all loops in an order."""
        context = self.options.context()
        loops = FaceLoops(context, self.tables.ordered(order), Gas(viscosity=Sutherland()), self.options.chosen_layout)
        places = self.domain.volumes.centres
        states = disturbed(context, places)
        loops.start(states, _NUT * (1.0 + np.sin(states[:, 0])), _ROUGH * float(states[:, -1].mean()) ** 2)
        works = standard_works(loops, self.options.schedule)
        for work in works:
            self._check(loops, work, order)
        self._time_standard(context, works, order)
        for work in works:
            self._ways_of(loops, work, order)
        total = sum(timed.seconds for timed in self.standard[order])
        self.tell(f"{order}: all loops {1e3 * total:.4g} ms, copy {self.copy_gbs:.1f} GB/s")

    def _check(self, loops: FaceLoops, work: Work, order: Order) -> None:
        """Run a way once; its result has to be that of the first one."""
        work.clear()
        work()
        name, found = work.kind.name, loops.result(work)
        wanted = self._wanted.setdefault(name, found)
        size = np.abs(wanted).max(initial=1e-300)
        difference = float(np.abs(found - wanted).max(initial=0.0) / size)
        self.difference = max(self.difference, difference)
        if not difference <= TOLERANCE:
            raise SolverError(
                f"{name} over {work.mode}, {order}, {work.loops[0].strategy}{', split' if work.split else ''}: the "
                f"result differs by {difference:.1e} of its size from that of the first way"
            )

    def _time_standard(self, context: Context, works: Sequence[Work], order: Order) -> None:
        """Time the common ways in turn, with the memory between the rounds."""
        meter = meter_for(context.device, context.threads)
        times: list[list[float]] = [[] for _ in works]
        for _ in range(self.rounds):
            self._copies.append(meter.measure(_PASSES).copy_gbs)
            for found, work in zip(times, works, strict=True):
                found.append(_seconds(context, work))
        self.standard[order] = [
            Timed.of(work, order, "asked" if self.options.schedule.strategy else "auto", found)
            for work, found in zip(works, times, strict=True)
        ]

    def _ways_of(self, loops: FaceLoops, standard: Work, order: Order) -> None:
        """Compare and time every other way of a loop, then leave the result of the common one."""
        for mode, split, strategy in _choices(standard):
            named, schedule = STRATEGIES[strategy], self.options.schedule
            work = work_of(loops, standard.kind.name, mode, split=split)
            races = work.loops[0].races
            if named and named not in races.allowed:
                self._refuse(work, strategy, races.reasons[named])
                continue
            if named or not schedule.strategy or schedule.strategy in races.allowed:
                wanted = replace(schedule, strategy=named or schedule.strategy)
                work = work_of(loops, standard.kind.name, mode, split=split, schedule=wanted)
            self._check(loops, work, order)
            times = [_seconds(loops.context, work) for _ in range(self.rounds)]
            self.ways.append(Timed.of(work, order, strategy, times))
        standard.clear()
        standard()

    def _refuse(self, work: Work, strategy: str, why: str) -> None:
        row = {"loop": work.kind.name, "over": work.mode, "strategy": strategy, "why": why}
        if row not in self.refused:
            self.refused.append(row)


def _choices(work: Work) -> Iterator[tuple[str, bool, str]]:
    """Yield set, whether it is split, and strategy of every way but the common one."""
    for mode in work.kind.modes:
        sums = work.kind.name == "K2" and mode == "cells"
        races = sums or (mode == "faces" and work.loops[0].races.racing)
        for split in (False, True)[: 1 + work.kind.split]:
            for strategy in STRATEGIES if races else ("auto",):
                if (mode, split, strategy) != (work.mode, False, "auto"):
                    yield mode, split, strategy


def _seconds(context: Context, run: Callable[[], object]) -> float:
    """Return the seconds of a call: so many of them that a clock can tell."""
    return stopwatch(context, round_seconds=_ROUND_SECONDS, most_calls=_MOST_CALLS).round(run)


def _stage(options: CompressibleOptions, domain: Domain, rounds: int) -> float:
    """Return the seconds of a stage of the flow with the model of turbulence."""
    context = options.context()
    flow = flow_on(context, domain, "rans", options.numerics)
    flow.iterate(1)
    return median(_seconds(context, flow.iterate) for _ in range(rounds)) / len(flow.scheme.time.stages)


def _whole(table: _Table, stage: float, cells: int) -> dict[str, Any]:
    """Return the time of all loops together, as they are commonly written and in their best ways, beside a stage."""
    totals = {f"{order}_ms": 1e3 * sum(t.seconds for t in found) for order, found in table.standard.items()}
    every = [*table.ways, *(t for found in table.standard.values() for t in found)]
    best = sum(min(t.seconds for t in every if t.kind.name == kind.name) for kind in KINDS)
    return totals | {
        "best_ways_ms": 1e3 * best, "best_ways_ns_per_cell": 1e9 * best / cells,
        "two_passes_ms": 1e3 * stage, "two_passes_ns_per_cell": 1e9 * stage / cells,
        "best_ways_over_two_passes": best / stage,
    }  # fmt: skip


def _renumbering(table: _Table) -> list[dict[str, Any]]:
    """Return the common way of each loop in all orders."""
    rows = []
    for k, kind in enumerate(KINDS):
        ms = {order: 1e3 * found[k].seconds for order, found in table.standard.items()}
        gain = {f"over_{order}": ms[order] / ms["renumbered"] for order in ("given", "shuffled")}
        rows.append({"loop": kind.name, **{f"{order}_ms": value for order, value in ms.items()}, **gain})
    return rows


def _ways(table: _Table) -> list[dict[str, Any]]:
    """Return all ways with their gain over the common one in the same order."""
    standard = {(t.order, t.kind.name): t.seconds for found in table.standard.values() for t in found}
    common = [t for found in table.standard.values() for t in found]
    both = sorted([*common, *table.ways], key=lambda t: [kind.name for kind in KINDS].index(t.kind.name))
    return [timed.way(standard[timed.order, timed.kind.name]) for timed in both]
