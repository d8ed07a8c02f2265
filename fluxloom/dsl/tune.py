"""Measured search over the schedules of loops and chains, on their own data, which stay as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fluxloom.core.errors import PlanError, did_you_mean
from fluxloom.dsl.chain import Chain, Reset
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.fusion import fuse
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.tune_knobs import chain_knobs, chain_schedule, loop_knobs, loop_schedule, starting_point
from fluxloom.dsl.tuning import (
    LoopTuning,
    TuneReport,
    TuningFile,
    choose_finalists,
    choose_winner,
    rank_rows,
    record_winner,
)
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom.perf.tuner import Knob, Point, SearchResult, hill_climb, sweep, tabu

__all__ = ["tune"]

METHODS = {"sweep": sweep, "hill_climb": hill_climb, "tabu": tabu}

_CHAIN_WARM = 3  # one step loop by loop, then fused ones until the buffers are where they return to


def tune(
    target: Loop | Chain | Sequence[Loop],
    *,
    method: str = "sweep",
    strategies: Sequence[str] | None = None,
    budget: int = 64,
    rounds: int = 5,
    record: bool = True,
    path: str | Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> TuneReport:
    """Find the fastest schedule of loops by measuring, and run with it from now on.

    Each candidate runs on the data that the loops hold; values are put back before each round and at the end.
    The fastest few then run against each other in interleaved rounds, and the medians decide.

    Parameters
    ----------
    target
        A loop; several; or a chain: each distinct loop by itself, then the tile of the fused form.
    method
        ``"sweep"`` (every candidate), ``"hill_climb"`` or ``"tabu"`` (fewer); see `fluxloom.perf.tuner`.
    strategies
        Race strategies to try; None: all that are correct for the loop and its grade of determinism.
    budget
        Candidates a loop, at most.
    rounds
        Rounds of a median.
    record
        Whether the winners go to the tuning file, where loops of later contexts find them.
    path
        The file; by default that of `TuningFile`.
    clock
        Returns the time in seconds.

    Returns
    -------
    TuneReport

    Raises
    ------
    PlanError
        For an unknown method, a strategy that is not correct for a loop, or a device without schedules.
    FluxloomError
        When no candidate could run; the data and schedules are then as before.

    Notes
    -----
    Winners of loops with a grade of determinism are recorded under a key of their own, so that results of
    reproducible runs never depend on the presence of a tuning file. Another chain that holds a tuned loop
    takes the new schedule with `Chain.build`.
    """
    chain = target if isinstance(target, Chain) else None
    loops = [target] if isinstance(target, Loop) else list(target.loops if isinstance(target, Chain) else target)
    if method not in METHODS:
        raise PlanError(f"unknown method {method!r}{did_you_mean(method, METHODS)} (known: {', '.join(METHODS)})")
    _check_tunable(loops)
    plan = _Plan(method, None if strategies is None else tuple(strategies), budget, max(1, rounds), clock)
    file = TuningFile(path) if record else None
    groups = _twins(loops)
    fused = _fused_scatters(chain) if chain is not None else []
    results = [_tune_loop(twins, plan, file) for twins in groups]
    notes: list[str] = []
    if chain is not None:
        results += _tune_chain(chain, fused, plan, file, notes)
    recorded = file.path if file is not None and file.enabled else None
    return TuneReport(tuple(results), recorded, tuple(notes))


def _check_tunable(loops: Sequence[Loop]) -> None:
    """Raise `PlanError` where there is no loop, or one whose device has no schedules."""
    if not loops:
        raise PlanError("there is no loop to tune")
    for loop in loops:
        if not loop.context.device.native:
            name = loop.context.device.name
            raise PlanError(f"{loop.name}: the device {name!r} runs kernels as Python; there is nothing to tune")


# ----------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class _Plan:
    """What was asked for."""

    method: str
    strategies: tuple[str, ...] | None
    budget: int
    rounds: int
    clock: Callable[[], float]


class _Snapshot:
    """Values of dats and globals, byte by byte, and the buffers they are in."""

    def __init__(self, items: Iterable[Dat | Global]) -> None:
        distinct = {id(item): item for item in items}
        self._saved = [(item, item.buffer, item.buffer.host().copy()) for item in distinct.values()]

    def restore(self) -> None:
        """Put the values back; the version counts on, because the values have changed meanwhile."""
        for item, _, values in self._saved:
            item.buffer.host(write=True)[:] = values
            item.version += 1

    def settle(self) -> None:
        """Put the buffers back too (a fused chain exchanges them), then the values."""
        moved = [(item, buffer) for item, buffer, _ in self._saved if item.buffer is not buffer]
        for item, buffer in moved:
            item.buffer = buffer
            item.context.epoch += 1
        self.restore()


def _stopwatch(plan: _Plan, snapshot: _Snapshot, context: Context, warm: int = 1) -> Stopwatch:
    return Stopwatch(plan.rounds, snapshot.restore, context.device.synchronize, warm, plan.clock)


def _reschedule(loop: Loop, schedule: Schedule) -> None:
    """Change a schedule and drop the plan of the old one, which a chain would otherwise still find."""
    loop.reschedule(schedule)
    loop.__dict__.pop("plan", None)


@contextmanager
def _borrowed(loops: Sequence[Loop], snapshot: _Snapshot) -> Iterator[None]:
    """Afterwards restore the data and forget the plans and argument blocks of the trials.

    When the search fails the loops get their old schedules back.
    """
    plans = loops[0].context.plans
    known = set(plans)
    before = [(loop, loop._wanted, len(loop._blocks)) for loop in loops]
    try:
        yield
    except BaseException:
        for loop, wanted, _ in before:
            _reschedule(loop, wanted)
        raise
    finally:
        snapshot.settle()
        for loop, _, blocks in before:
            del loop._blocks[blocks:]
            loop._native = None
        for key in set(plans) - known:
            del plans[key]


# ------------------------------------------------------------------------------------- one loop


def _twins(loops: Sequence[Loop]) -> list[list[Loop]]:
    """Return the distinct loops, each with those that differ from it in their dats only."""
    groups: dict[Hashable, list[Loop]] = {}
    for loop in loops:
        maps = tuple(id(argument.map) for argument in loop.bound.arguments)
        twins = groups.setdefault((loop.tuning_key, id(loop.over), maps), [])
        if not any(loop is known for known in twins):
            twins.append(loop)
    return list(groups.values())


def _search(plan: _Plan, knobs: list[Knob], measure: Callable[[Point], float], **options: Any) -> SearchResult:
    return METHODS[plan.method](knobs, measure, budget=plan.budget, **options)


def _tune_loop(twins: list[Loop], plan: _Plan, file: TuningFile | None) -> LoopTuning:
    loop = twins[0]
    before = loop.schedule
    knobs, now = loop_knobs(loop, plan.strategies, plan.method, plan.budget)
    schedule_of = partial(loop_schedule, loop, now)
    snapshot = _Snapshot(loop.written)
    with _borrowed([loop], snapshot):
        watch = _stopwatch(plan, snapshot, loop.context)

        def prepare(schedule: Schedule) -> Run:
            _reschedule(loop, schedule)
            return loop.build().run

        def in_force(point: Point) -> Schedule:
            try:
                _reschedule(loop, schedule_of(point))
            except PlanError:
                return schedule_of(point)  # it cannot run, as its measurement will say
            return loop.schedule

        times = {before: watch.median(prepare(before))}
        start = starting_point(knobs, now)
        found = _search(plan, knobs, lambda p: watch.median(prepare(schedule_of(p))), start=start, identity=in_force)
        times |= {in_force(t.point): t.seconds for t in found.trials if t.feasible}
        finalists = choose_finalists(times, before)
        final = dict(zip(finalists, watch.race([prepare(s) for s in finalists]), strict=True))
        keep = not loop.races.racing or before.strategy == now.strategy
        best = choose_winner(final, before, keep=keep)
    for twin in twins:
        _reschedule(twin, best)
    key = record_winner(file, loop, best, final[best])
    rows = rank_rows(loop.name, times, final, {before: "before"})
    skipped = sum(not trial.feasible for trial in found.trials)
    return LoopTuning(loop.name, key, before, final[before], best, final[best], rows, skipped)


# ---------------------------------------------------------------------------------------- one chain


def _fused_scatters(chain: Chain) -> list[Loop]:
    """Return the gathered loops of the groups that the chain fuses; largest first."""
    if not chain._fuse:
        return []
    found: dict[int, Loop] = {}
    for group in fuse(chain.loops, chain.transient).groups:
        if len(group.loops) > 1:
            found |= {id(loop): loop for loop in group.scatter}
    return sorted(found.values(), key=lambda loop: -loop.over.size)


def _tune_chain(
    chain: Chain, scatters: list[Loop], plan: _Plan, file: TuningFile | None, notes: list[str]
) -> list[LoopTuning]:
    """Choose between the fused form, with one tile size for all its groups, and each loop's own schedule."""
    if not scatters or (plan.strategies is not None and "gather" not in plan.strategies):
        chain.build()
        return []
    written = [data for loop in chain.loops for data in loop.written]
    written += [step.target for step in chain.steps if isinstance(step, Reset)]
    if any(d.watched for d in chain.dats):
        notes.append(f"{chain.name}: the fused form was not tuned, because a NumPy view of its data is alive")
        chain.build()
        return []
    own = {id(loop): loop.schedule for loop in scatters}
    knobs, first = chain_knobs(scatters, own)
    snapshot = _Snapshot(written)

    def apply(schedule: Schedule | None) -> None:
        for loop in scatters:
            mine = own[id(loop)]
            tile = schedule and replace(mine, strategy="gather", block=schedule.block, lanes=schedule.lanes)
            _reschedule(loop, tile or mine)

    def prepare(schedule: Schedule | None) -> Run:
        apply(schedule)
        trial = Chain(chain.steps, transient=chain.transient, name=chain.name)
        trial.build()
        return trial

    with _borrowed(_unique(chain.loops), snapshot):
        watch = _stopwatch(plan, snapshot, chain.context, _CHAIN_WARM)
        found = _search(plan, knobs, lambda p: watch.median(prepare(chain_schedule(p))), start=first)
        times = {chain_schedule(t.point): t.seconds for t in found.trials if t.feasible}
        before, apart = chain_schedule(first), Schedule()
        finalists = choose_finalists(times, before)
        seconds = watch.race([*(prepare(s) for s in finalists), prepare(None)])
        final = dict(zip([*finalists, apart], seconds, strict=True))
        best = choose_winner(final, before)
    fused = best is not apart
    apply(best if fused else None)
    for loop in scatters if fused else []:
        record_winner(file, loop, loop.schedule, final[best])
    chain.build()
    rows = rank_rows(chain.name, times, final, dict.fromkeys(times, "fused") | {apart: "each loop's own schedule"})
    return [LoopTuning(chain.name, "", before, final[before], best, final[best], rows)]


def _unique(loops: Sequence[Loop]) -> list[Loop]:
    return list({id(loop): loop for loop in loops}.values())
