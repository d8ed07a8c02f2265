"""Measured search over the schedules of loops and chains, on their own data, which stay as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError, did_you_mean
from fluxloom.dsl.chain import Chain, Reset
from fluxloom.dsl.context import Context
from fluxloom.dsl.cost import TILES, choose_tile
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.fusion import fuse
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.tuning import LoopTuning, TuneReport, TuningFile, choose_finalists, choose_winner, gradable, rank_rows
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom.perf.tuner import Knob, Point, SearchResult, hill_climb, sweep, tabu

__all__ = ["tune"]

BLOCKS = (256, 1024, 4096, 16384)
"""Elements a block of the colouring strategies."""

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
    if not loops:
        raise PlanError("there is no loop to tune")
    for loop in loops:
        if not loop.context.device.native:
            name = loop.context.device.name
            raise PlanError(f"{loop.name}: the device {name!r} runs kernels as Python; there is nothing to tune")
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
    wait = getattr(context.device, "synchronize", None)
    rest = {} if wait is None else {"wait": wait}
    return Stopwatch(plan.rounds, snapshot.restore, warm=warm, clock=plan.clock, **rest)


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


def _knobs(loop: Loop, strategies: tuple[str, ...] | None) -> tuple[list[Knob], Schedule]:
    """Return the choices of a loop, and where the search starts: at what is in force now."""
    now = loop.schedule
    knobs: list[Knob] = []
    if loop.races.racing:
        names = _strategies(loop, strategies)
        first = now.strategy if now.strategy in names else names[0]
        now = replace(now, strategy=first)
        knobs.append(Knob("strategy", (first, *(n for n in names if n != first)), ordered=False))
        knobs.append(Knob("size", tuple(range(1 + max(len(_sizes(loop, name)) for name in names)))))
    if _has_packs(loop):
        wide = (1, 4, 8) if loop.bound.compute.size == 8 else (1, 4, 8, 16)
        knobs.append(Knob("lanes", tuple(sorted({*wide, now.lanes}))))
    if not loop.races.racing and _streamable(loop):
        knobs.append(Knob("stream", (bool(now.stream), not now.stream), ordered=False))
    return knobs, now


def _strategies(loop: Loop, wanted: tuple[str, ...] | None) -> list[str]:
    """Return the strategies to try.

    Raises
    ------
    PlanError
        If one that was asked for is unknown, or none of them is possible.
    """
    grade = loop.schedule.deterministic
    allowed = [name for name in loop.races.allowed if gradable(name, grade)]
    if wanted is None:
        return allowed
    for name in wanted:
        Schedule(strategy=name)
    chosen = [name for name in allowed if name in wanted]
    if not chosen:
        for name in wanted:
            loop.races.require(loop.name, name)
            Schedule(strategy=name, deterministic=grade)
        raise PlanError(f"{loop.name}: no strategies to try; possible are {', '.join(allowed)}")
    return chosen


def _sizes(loop: Loop, strategy: str) -> tuple[int, ...]:
    """Return the blocks or tiles that make a difference, besides the size the cost model chooses."""
    if strategy == "gather":
        whole = loop.races.targets[0].size
        single = (1,) if len(loop.races.tables) == 1 else ()
        return (*single, *(tile for k, tile in enumerate(TILES) if k == 0 or TILES[k - 1] < whole))
    if strategy in ("block_colour", "block_permute"):
        return tuple(block for k, block in enumerate(BLOCKS) if k == 0 or BLOCKS[k - 1] < loop.over.size)
    return ()


def _has_packs(loop: Loop) -> bool:
    return all(a.map is None or a.map.legs >= 0 for a in loop.bound.arguments)


def _streamable(loop: Loop) -> bool:
    parameters = loop.bound.kernel.parameters
    return any(
        p.access is Access.WRITE and a.map is None for p, a in zip(parameters, loop.bound.arguments, strict=True)
    )


def _schedule(loop: Loop, now: Schedule, point: Point) -> Schedule:
    """Return the schedule of a point: size 0 leaves the block to the cost model."""
    choices: dict[str, Any] = {"lanes": point.get("lanes", now.lanes), "stream": point.get("stream", now.stream)}
    if "strategy" in point:
        sizes = (0, *_sizes(loop, point["strategy"]))
        choices |= {"strategy": point["strategy"], "block": sizes[min(point["size"], len(sizes) - 1)]}
    return replace(now, **choices)


def _search(plan: _Plan, knobs: list[Knob], measure: Callable[[Point], float], **options: Any) -> SearchResult:
    return METHODS[plan.method](knobs, measure, budget=plan.budget, **options)


def _tune_loop(twins: list[Loop], plan: _Plan, file: TuningFile | None) -> LoopTuning:
    loop = twins[0]
    before = loop.schedule
    knobs, now = _knobs(loop, plan.strategies)
    schedule_of = partial(_schedule, loop, now)
    snapshot = _Snapshot(loop.written)
    with _borrowed([loop], snapshot):
        watch = _stopwatch(plan, snapshot, loop.context)

        def prepare(schedule: Schedule) -> Run:
            _reschedule(loop, schedule)
            return loop.build().run

        def in_force(point: Point) -> Schedule:
            _reschedule(loop, schedule_of(point))
            return loop.schedule

        times = {before: watch.median(prepare(before))}
        start = {"lanes": now.lanes} if any(k.name == "lanes" for k in knobs) else None
        found = _search(plan, knobs, lambda p: watch.median(prepare(schedule_of(p))), start=start, identity=in_force)
        times |= {in_force(t.point): t.seconds for t in found.trials if t.feasible}
        finalists = choose_finalists(times, before)
        final = dict(zip(finalists, watch.race([prepare(s) for s in finalists]), strict=True))
        keep = not loop.races.racing or before.strategy == now.strategy
        best = choose_winner(final, before, keep=keep)
    for twin in twins:
        _reschedule(twin, best)
    key = _record(file, loop, best, final[best])
    rows = rank_rows(loop.name, times, final, {before: "before"})
    skipped = sum(not trial.feasible for trial in found.trials)
    return LoopTuning(loop.name, key, before, final[before], best, final[best], rows, skipped)


def _record(file: TuningFile | None, loop: Loop, schedule: Schedule, seconds: float) -> str:
    """Write a winner to the file; returns its key."""
    grade = schedule.deterministic
    key = f"{loop.tuning_key}:{grade}" if grade else loop.tuning_key
    if file is not None and schedule.threads == loop.context.threads:
        file.put(key, loop.name, replace(schedule, threads=0, deterministic=None), seconds)
    return key


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
    knobs, first = _chain_knobs(scatters, own)
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

    def schedule_of(point: Point) -> Schedule:
        return Schedule(strategy="gather", block=point["tile"], lanes=point["lanes"])

    with _borrowed(_unique(chain.loops), snapshot):
        watch = _stopwatch(plan, snapshot, chain.context, _CHAIN_WARM)
        found = _search(plan, knobs, lambda p: watch.median(prepare(schedule_of(p))), start=first)
        times = {schedule_of(t.point): t.seconds for t in found.trials if t.feasible}
        before, apart = schedule_of(first), Schedule()
        finalists = choose_finalists(times, before)
        seconds = watch.race([*(prepare(s) for s in finalists), prepare(None)])
        final = dict(zip([*finalists, apart], seconds, strict=True))
        best = choose_winner(final, before)
    fused = best is not apart
    apply(best if fused else None)
    for loop in scatters if fused else []:
        _record(file, loop, loop.schedule, final[best])
    chain.build()
    rows = rank_rows(chain.name, times, final, dict.fromkeys(times, "fused") | {apart: "each loop's own schedule"})
    return [LoopTuning(chain.name, "", before, final[before], best, final[best], rows)]


def _chain_knobs(scatters: list[Loop], own: dict[int, Schedule]) -> tuple[list[Knob], dict[str, Any]]:
    """Return tile and lanes of the fused groups, and what they would be by themselves."""
    largest = scatters[0]
    mine = own[id(largest)]
    gathered = mine.strategy == "gather" and mine.block > 1
    tile = mine.block if gathered else choose_tile(largest.bound, largest.races)
    tiles = {*(size for size in _sizes(largest, "gather") if size > 1), tile}
    lanes = {4, 8, mine.lanes} if largest.bound.compute.size == 8 else {4, 8, 16, mine.lanes}
    first = {"tile": tile, "lanes": mine.lanes}
    return [Knob("tile", tuple(sorted(tiles))), Knob("lanes", tuple(sorted(lanes)))], first


def _unique(loops: Sequence[Loop]) -> list[Loop]:
    return list({id(loop): loop for loop in loops}.values())
