"""The tuning file: the best schedule found for a kernel on a device at a size; and what a search reports."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from fluxloom.core.advice import warn
from fluxloom.core.errors import FluxloomError, PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.toolchain import Cache, open_cache

__all__ = [
    "LoopTuning",
    "TuneReport",
    "TuneRow",
    "TuningFile",
    "TuningRow",
    "choose_finalists",
    "choose_winner",
    "gradable",
    "graded_key",
    "rank_rows",
    "schedule_words",
    "tuning_key",
]

FINALISTS = 4
"""So many of the fastest run against each other, in turn, before the winner is chosen."""

MARGIN = 0.02
"""A schedule replaces the one in force when it is faster by more than this: less is noise."""

_IN_BLOCKS = ("block_colour", "block_permute", "gather")

Entries = dict[str, dict[str, Any]]


def tuning_key(digest: str, device: str, size: int, threads: int) -> str:
    """Return the key of a loop: kernel digest, device, and size class (a power of two)."""
    return f"{digest[:16]}:{sha256(device.encode()).hexdigest()[:8]}:t{threads}:2^{max(0, size - 1).bit_length()}"


def schedule_words(schedule: Schedule) -> str:
    """Return a schedule in a few words, for tables: ``"gather, block 4096, lanes 4"``."""
    if schedule == Schedule():
        return "automatic"
    items = schedule.stage is not None  # said of devices of work items alone
    words = [schedule.strategy or "direct"]
    words += [f"block {schedule.block}"] if schedule.block and (items or schedule.strategy in _IN_BLOCKS) else []
    words += [f"lanes {schedule.lanes}"] if schedule.lanes and (schedule.rows or not items) else []
    words += [f"rows {schedule.rows}"] if schedule.rows else []
    words += [f"registers {schedule.registers}"] if schedule.registers else []
    words += [f"sites {schedule.sites}"] if schedule.sites > 1 else []
    flags = {"stream": schedule.stream, "staged": schedule.stage, "split": schedule.split, "pairs": schedule.pairs}
    return ", ".join(words + [name for name, flag in flags.items() if flag])


# -------------------------------------------------------------------------------------------- the file


@dataclass(frozen=True)
class TuningRow:
    """One record of a tuning file.

    Attributes
    ----------
    key
        Kernel digest, device, threads and size class, as made by `tuning_key`.
    loop
        Name of the loop that was measured.
    schedule
        The fastest that was found.
    seconds
        Of one call.
    """

    key: str
    loop: str
    schedule: Schedule
    seconds: float


class TuningFile:
    """Schedules by key, kept as JSON.

    Several processes may write at once: a record is added under a lock, and the file is replaced as a whole,
    so that a reader never sees a part of it.

    Parameters
    ----------
    path
        The file; by default ``FLUXLOOM_TUNING``, else ``tuning.json`` in the cache directory. The value
        ``off`` of ``FLUXLOOM_TUNING`` disables reading and writing. Files can be copied between machines
        of the same kind.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        chosen = str(path) if path is not None else os.environ.get("FLUXLOOM_TUNING", "")
        self.enabled = chosen != "off"
        self.path = Path(chosen) if chosen and self.enabled else open_cache().folder / "tuning.json"

    # ------------------------------------------------------------------------------------- reading
    def entries(self) -> Entries:
        """Return everything recorded.

        Raises
        ------
        FluxloomError
            If the file is not readable JSON; the message says how to start anew.
        """
        if not self.enabled:
            return {}
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._broken(error) from error
        if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
            raise self._broken("it does not hold one record a key")
        return found

    def _broken(self, reason: object) -> FluxloomError:
        return FluxloomError(
            f"tuning file {self.path} cannot be read ({reason}); delete it, or set FLUXLOOM_TUNING=off"
        )

    def get(self, key: str) -> Schedule | None:
        """Return the recorded schedule of a loop, if any."""
        entry = self.entries().get(key)
        return self._schedule(entry) if entry else None

    def _schedule(self, entry: dict[str, Any]) -> Schedule | None:
        """Return the schedule of a record; None, with a warning, where it names a form of kernels that is gone."""
        values = entry.get("schedule")
        known = {f.name for f in fields(Schedule)}
        if not isinstance(values, dict):
            raise self._broken("a record has no schedule")
        if unknown := sorted(set(values) - known):
            raise self._broken(f"a schedule has the unknown choices {', '.join(unknown)}: of another version?")
        if values.get("stage") and values.get("strategy") == "gather":
            warn(
                f"tuning file {self.path}: {entry.get('loop', '?')!r} was tuned to a gather with stage=True, which is "
                "gone; the record is left out: tune the loop again"
            )
            return None
        try:
            return Schedule(**values)
        except (FluxloomError, TypeError, ValueError) as error:
            raise self._broken(f"a schedule is none: {error}") from None

    def show(self) -> list[TuningRow]:
        """Return the records, by the name of the loop."""
        rows = [
            TuningRow(key, str(entry.get("loop", "?")), schedule, self._seconds(entry))
            for key, entry in self.entries().items()
            if (schedule := self._schedule(entry)) is not None
        ]
        return sorted(rows, key=lambda row: (row.loop, row.key))

    def _seconds(self, entry: dict[str, Any]) -> float:
        """Return the time of a record."""
        seconds = entry.get("seconds", 0.0)
        if not isinstance(seconds, int | float) or not 0.0 <= seconds < float("inf"):
            raise self._broken(f"{seconds!r} are no seconds")
        return float(seconds)

    # ------------------------------------------------------------------------------------- writing
    def put(self, key: str, name: str, schedule: Schedule, seconds: float) -> None:
        """Record a schedule; the file is replaced in one step."""
        entry = {"loop": name, "seconds": seconds, "schedule": asdict(schedule)}
        self._change(lambda entries: entries | {key: entry})

    def merge(self, other: TuningFile | str | Path, *, replace: bool = False) -> int:
        """Take the records of another file.

        Parameters
        ----------
        other
            For instance a file that came with a program.
        replace
            Whether its records replace those that are here already.

        Returns
        -------
        int
            Records taken.

        Raises
        ------
        FluxloomError
            If the other file does not exist or cannot be read.
        """
        source = other if isinstance(other, TuningFile) else TuningFile(other)
        if not source.path.exists():
            raise FluxloomError(f"there is no tuning file {source.path} to take records from")
        theirs = {key: entry for key, entry in source.entries().items() if source._schedule(entry) is not None}
        taken = 0

        def change(mine: Entries) -> Entries:
            nonlocal taken
            taken = sum(replace or key not in mine for key in theirs)
            return mine | theirs if replace else theirs | mine

        self._change(change)
        return taken

    def ship(self, path: str | Path, *, replace: bool = True) -> int:
        """Give the records of this file to another one, made if it is missing; returns how many it took.

        The other file can be put beside a program and taken in elsewhere with `merge`, or be used as it is
        through ``FLUXLOOM_TUNING``.
        """
        return TuningFile(path).merge(self, replace=replace)

    def clear(self, loop: str | None = None) -> None:
        """Forget everything, or the records of the loops of one name."""
        if loop is None:
            self.path.unlink(missing_ok=True)
        else:
            self._change(lambda entries: {k: e for k, e in entries.items() if e.get("loop") != loop})

    def _change(self, change: Callable[[Entries], Entries]) -> None:
        """Read, change and replace the file while nobody else does."""
        if not self.enabled:
            return
        with self._lock() as folder:
            text = json.dumps(change(self.entries()), indent=1, sort_keys=True)
            folder.write(self.path.name, text.encode())

    @contextlib.contextmanager
    def _lock(self) -> Iterator[Cache]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FluxloomError(
                f"cannot record tuning results in {self.path}: {error.strerror or error}; "
                "set FLUXLOOM_TUNING to another file, or to off"
            ) from error
        folder = Cache(self.path.parent)
        with folder.lock(sha256(self.path.name.encode()).hexdigest()):
            yield folder


def graded_key(key: str, grade: str | None) -> str:
    """Return the key of schedules of a grade of determinism, which have records of their own."""
    return f"{key}:{grade}" if grade else key


# ------------------------------------------------------------------------------------------ the report


@dataclass(frozen=True)
class TuneRow:
    """One measured schedule.

    Attributes
    ----------
    loop
        Name of the loop or chain.
    schedule
        How it ran.
    seconds
        Median of one call.
    percent
        Seconds of the best, divided by these, in per cent (both of the final rounds, or both of the search).
    final
        Whether the time comes from the interleaved rounds that the fastest few ran in.
    note
        What the schedule does not say: ``"before"``, ``"fused"``, ``"each loop's own"``.
    """

    loop: str
    schedule: Schedule
    seconds: float
    percent: float
    final: bool
    note: str = ""


def gradable(strategy: str, grade: str | None) -> bool:
    """Whether a strategy has a grade of determinism."""
    try:
        Schedule(strategy=strategy, deterministic=grade)
    except PlanError:
        return False
    return True


def choose_finalists(times: dict[Schedule, float], before: Schedule) -> list[Schedule]:
    """Return the fastest schedules of a search, and what was in force before it."""
    fastest = sorted(times, key=lambda s: times[s])[:FINALISTS]
    return fastest if before in fastest else [*fastest, before]


def choose_winner(final: dict[Schedule, float], before: Schedule, *, keep: bool = True) -> Schedule:
    """Return the fastest; what was in force before (unless it may not be kept) when the others gain too little."""
    best = min((s for s in final if keep or s != before), key=lambda s: final[s])
    return before if keep and final[before] <= (1.0 + MARGIN) * final[best] else best


def rank_rows(
    name: str, times: dict[Schedule, float], final: dict[Schedule, float], notes: dict[Schedule, str]
) -> tuple[TuneRow, ...]:
    """Return the rows of one loop from its search times and those of its final rounds, which come first."""
    seconds = times | final
    fastest = {True: min(final.values()), False: min(times.values())}
    percents = {s: 100.0 * fastest[s in final] / t if t > 0 else 100.0 for s, t in seconds.items()}
    distributed = sorted(seconds, key=lambda s: (s not in final, seconds[s]))
    return tuple(TuneRow(name, s, seconds[s], percents[s], s in final, notes.get(s, "")) for s in distributed)


@dataclass(frozen=True)
class LoopTuning:
    """What was found for one loop, or for the fused form of a chain.

    Attributes
    ----------
    name, key
        Name, and key in the tuning file.
    before, before_seconds
        The schedule that was in force, and its time.
    best, seconds
        The schedule in force now, and its time.
    rows
        Everything that was measured, fastest first.
    skipped
        Points that cannot run.
    """

    name: str
    key: str
    before: Schedule
    before_seconds: float
    best: Schedule
    seconds: float
    rows: tuple[TuneRow, ...]
    skipped: int = 0

    @property
    def gain(self) -> float:
        """How many times faster than before."""
        return self.before_seconds / self.seconds if self.seconds else 1.0


@dataclass(frozen=True)
class TuneReport:
    """What `fluxloom.dsl.tune.search.tune` measured and chose; ``str`` makes a table of it.

    Attributes
    ----------
    results
        One a distinct loop, and one for the fused form of a chain.
    path
        Where the winners were recorded; None when they were not.
    notes
        What could not be tuned, and why.
    total
        Seconds that all took, compilation included.
    """

    results: tuple[LoopTuning, ...]
    path: Path | None = None
    notes: tuple[str, ...] = ()
    total: float = 0.0

    @property
    def rows(self) -> list[TuneRow]:
        """All rows of all loops."""
        return [row for result in self.results for row in result.rows]

    @property
    def best(self) -> dict[str, Schedule]:
        """The schedule of each loop, by name."""
        return {result.name: result.best for result in self.results}

    def __getitem__(self, name: str) -> LoopTuning:
        for result in self.results:
            if result.name == name:
                return result
        raise FluxloomError(f"{name!r} was not tuned (tuned were: {', '.join(self.best)})")

    def __str__(self) -> str:
        lines = []
        for result in self.results:
            lines.append(f"{result.name}: {schedule_words(result.best)}, {result.gain:.2f} times as fast as before")
            for row in result.rows:
                note = f"  ({row.note})" if row.note else ""
                words = schedule_words(row.schedule)
                lines.append(f"  {words:<44} {1e3 * row.seconds:10.4f} ms {row.percent:6.1f} %{note}")
        lines += self.notes
        lines.append(f"recorded in {self.path}" if self.path else "not recorded")
        return "\n".join(lines)
