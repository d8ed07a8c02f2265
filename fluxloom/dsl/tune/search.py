"""Measured search over the schedules of loops and chains, on their own data, which stay as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fluxloom.core.activity import activity
from fluxloom.core.errors import PlanError, did_you_mean
from fluxloom.dsl.declare.runtime import Runtime, unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.tuning import (
    LoopTuning,
    TuneReport,
    TuningFile,
    choose_finalists,
    choose_winner,
    rank_rows,
)
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.fusion import fuse
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.snapshot import Snapshot
from fluxloom.dsl.tune.knobs import chain_knobs, chain_schedule, loop_knobs, loop_schedule, starting_point
from fluxloom.dsl.tune.runs import Runs, depends_on_itself, family, map_identity, record_winner, shared_later
from fluxloom.perf.screening import screen
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom.perf.tuner import Knob, Point, SearchResult, hill_climb, sweep, tabu

__all__ = ["tune"]

METHODS = {"sweep": sweep, "screen": screen, "hill_climb": hill_climb, "tabu": tabu}

Tell = Callable[[str], object]
"""Is given a line for people who wait."""

_SEARCH_ROUNDS = 3  # at most: the fastest few have all rounds, one after the other

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
    tell: Tell | None = None,
) -> TuneReport:
    """Find the fastest schedule of loops by measuring, and run with it from now on.

    Each candidate runs on the data that the loops hold; values that it uses and changes are put back before each round,
    and all at the end. One that is far behind the best is dropped after its first calls. The fastest few then run
    against each other in interleaved rounds, and the medians decide.

    Parameters
    ----------
    target
        A loop; several; or a chain: each distinct loop by itself, then the tile of the fused form.
    method
        ``"sweep"`` (every candidate), ``"hill_climb"`` or ``"tabu"`` (fewer), see `fluxloom.perf.tuner`; ``"screen"``:
        one choice at a time, then what should be good together, see `fluxloom.perf.screening`. It compiles
        candidates side by side, and of loops that differ in constants alone it searches for the first only: the others
        race with what was best there.
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
    tell
        Is told which loop is next, and at the end how long all took.

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
    begin, tell = time.perf_counter(), tell or _nobody
    plan = _Plan(method, None if strategies is None else tuple(strategies), budget, max(1, rounds), clock, tell)
    file = TuningFile(path) if record else None
    fused = _fused_scatters(chain) if chain is not None else []
    results = _tune_loops(_twins(loops), plan, file)
    notes: list[str] = []
    if chain is not None:
        results += _tune_chain(chain, fused, plan, file, notes)
    recorded = file.path if file is not None and file.enabled else None
    report = TuneReport(tuple(results), recorded, tuple(notes), time.perf_counter() - begin)
    tell(f"tuned {len(results)} in {report.total:.1f} s, {len(report.rows)} schedules timed")
    return report


def _nobody(line: str) -> None:
    """Tell nobody."""


def _tune_loops(groups: Sequence[list[Loop]], plan: _Plan, file: TuningFile | None) -> list[LoopTuning]:
    """Tune one loop after the other; keep plans while loops with the same maps follow, and the best of a family."""
    context, results = groups[0][0].context, list[LoopTuning]()
    known, best = context.plans.known(), dict[Hashable, list[Schedule]]()
    with activity("tuning", total=len(groups)) as work:
        for number, twins in enumerate(groups):
            plan.tell(f"tuning {number + 1} of {len(groups)}: {twins[0].name}")
            work.at(twins[0].name)
            alike = family(twins[0])
            results.append(_tune_loop(twins, plan, file, best.get(alike) if plan.method == "screen" else None))
            best.setdefault(alike, [row.schedule for row in results[-1].rows if row.final])
            if not shared_later(twins, [loop for later in groups[number + 1 :] for loop in later]):
                context.plans.forget(known)
            work.step()
    return results


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
    tell: Tell = field(default=_nobody)


def _stopwatch(plan: _Plan, restore: Callable[[], None], context: Runtime, warm: int = 1) -> Stopwatch:
    return Stopwatch(plan.rounds, restore, context.device.synchronize, warm, plan.clock)


@contextmanager
def _borrowed(loops: Sequence[Loop], snapshot: Snapshot) -> Iterator[None]:
    """Afterwards restore the data and forget the argument blocks of the trials.

    When the search fails the loops get their old schedules back, and plans of trials are forgotten.
    """
    known = loops[0].context.plans.known()
    before = [(loop, loop._wanted, len(loop._blocks)) for loop in loops]
    try:
        yield
    except BaseException:
        for loop, wanted, _ in before:
            loop.reschedule(wanted)
        loops[0].context.plans.forget(known)
        raise
    finally:
        snapshot.settle()
        for loop, _, blocks in before:
            del loop._blocks[blocks:]
            loop._native = None


# ------------------------------------------------------------------------------------- one loop


def _twins(loops: Sequence[Loop]) -> list[list[Loop]]:
    """Return the distinct loops, each with those that differ from it in their dats only."""
    groups: dict[Hashable, list[Loop]] = {}
    for loop in loops:
        twins = groups.setdefault((loop.tuning_key, map_identity(loop)), [])
        if not any(loop is known for known in twins):
            twins.append(loop)
    return list(groups.values())


def _search(plan: _Plan, knobs: list[Knob], measure: Callable[[Point], float], **options: Any) -> SearchResult:
    return METHODS[plan.method](knobs, measure, budget=plan.budget, **options)


def _tune_loop(
    twins: list[Loop], plan: _Plan, file: TuningFile | None, tried: Sequence[Schedule] | None
) -> LoopTuning:
    """Tune a loop, for itself and its twins; ``tried`` is what was best for another loop of its family."""
    loop = twins[0]
    before = loop.schedule
    knobs, now = loop_knobs(loop, plan.strategies, plan.method, plan.budget)
    snapshot, changing = Snapshot(loop.written), Snapshot(depends_on_itself(loop))
    with _borrowed([loop], snapshot):
        watch, runs = _stopwatch(plan, changing.restore, loop.context), Runs(loop)
        if tried is None:
            times, skipped = _trials(loop, knobs, now, plan, watch, runs)
            finalists = choose_finalists(times, before)
        else:
            finalists, skipped, times = [*dict.fromkeys((*tried, before))], 0, {}
            runs.prepare(finalists)
        final = dict(zip(finalists, watch.race([runs.run(s) for s in finalists]), strict=True))
        keep = not loop.races.racing or before.strategy == now.strategy
        best = choose_winner(final, before, keep=keep)
    for twin in twins:
        twin.reschedule(best)
    key = record_winner(file, loop, best, final[best])
    rows = rank_rows(loop.name, times or final, final, {before: "before"})
    return LoopTuning(loop.name, key, before, final[before], best, final[best], rows, skipped)


def _trials(
    loop: Loop, knobs: list[Knob], now: Schedule, plan: _Plan, watch: Stopwatch, runs: Runs
) -> tuple[dict[Schedule, float], int]:
    """Return the seconds of what a search has tried, and how many points cannot run."""
    before, schedule_of = loop.schedule, partial(loop_schedule, loop, now)

    def in_force(point: Point) -> Schedule:
        try:
            loop.reschedule(schedule_of(point))
            return loop.schedule
        except PlanError:
            return schedule_of(point)  # it cannot run, as its measurement will say

    few = min(plan.rounds, _SEARCH_ROUNDS)
    times = {before: watch.median(runs.run(before), most=few)}

    def measure(point: Point) -> float:
        schedule = in_force(point)
        if schedule not in times:
            times[schedule] = watch.median(runs.run(schedule), min(times.values()), few)
        return times[schedule]

    options: dict[str, Any] = {"start": starting_point(knobs, now), "identity": in_force}
    if plan.method == "screen":
        options["ready"] = lambda points: runs.prepare(in_force(point) for point in points)
    found = _search(plan, knobs, measure, **options)
    return times, sum(not trial.feasible for trial in found.trials)


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
    snapshot, known = Snapshot(written), chain.context.plans.known()

    def apply(schedule: Schedule | None) -> None:
        for loop in scatters:
            mine = own[id(loop)]
            tile = schedule and replace(mine, strategy="gather", block=schedule.block, lanes=schedule.lanes)
            loop.reschedule(tile or mine)

    def prepare(schedule: Schedule | None) -> Run:
        apply(schedule)
        trial = Chain(chain.steps, transient=chain.transient, name=chain.name)
        trial.build()
        return trial

    with _borrowed(unique(chain.loops), snapshot):
        watch = _stopwatch(plan, snapshot.restore, chain.context, _CHAIN_WARM)
        found = _search(plan, knobs, lambda p: watch.median(prepare(chain_schedule(p))), start=first)
        times = {chain_schedule(t.point): t.seconds for t in found.trials if t.feasible}
        before, apart = chain_schedule(first), Schedule()
        finalists = choose_finalists(times, before)
        seconds = watch.race([*(prepare(s) for s in finalists), prepare(None)])
        final = dict(zip([*finalists, apart], seconds, strict=True))
        best = choose_winner(final, before)
    chain.context.plans.forget(known)
    fused = best is not apart
    apply(best if fused else None)
    for loop in scatters if fused else []:
        record_winner(file, loop, loop.schedule, final[best])
    chain.build()
    rows = rank_rows(chain.name, times, final, dict.fromkeys(times, "fused") | {apart: "each loop's own schedule"})
    return [LoopTuning(chain.name, "", before, final[before], best, final[best], rows)]
