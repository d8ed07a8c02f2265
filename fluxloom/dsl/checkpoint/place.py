"""Where in the sequence of loops a checkpoint is entered, and when one is due."""

from __future__ import annotations

import time
import weakref
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real

from fluxloom.comm.base import Comm
from fluxloom.core.errors import CheckpointError, did_you_mean
from fluxloom.dsl.checkpoint.rules import Advice, Call, call_of, changed_before, costs, find_period
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop

__all__ = ["Choices", "Due", "Met", "Placement", "Record", "placement", "rolled"]

rolled = zlib.crc32
"""Continues a rolling check sum with some bytes."""

_HISTORY = 4096
_PATIENCE = 256
"""Calls for which a placement waits until a period shows."""


class Met:
    """A distinct call: its number, what it does, when it came last and before."""

    __slots__ = ("before", "call", "last", "number", "word")

    def __init__(self, number: int, call: Call) -> None:
        self.number, self.call, self.last, self.before = number, call, 0, 0
        self.word = zlib.crc32(call.text.encode()).to_bytes(4, "little")


class Record:
    """The calls of a run: which there are, what they use, and in which order they came.

    Attributes
    ----------
    calls
        Distinct calls, by number.
    dats
        Dats they use, by number: in order of first use, which is the same in every run of a program.
    history
        Numbers of the last calls.
    """

    def __init__(self) -> None:
        self.calls: list[Met] = []
        self.dats: list[Dat] = []
        self.history: deque[int] = deque(maxlen=_HISTORY)
        self.known: dict[int, Met] = {}
        self._alive: dict[int, weakref.ref[Loop | Chain]] = {}
        self._same: dict[tuple[object, ...], Met] = {}
        self._numbers: dict[int, int] = {}
        self._versions: list[int] = []

    def meet(self, item: Loop | Chain) -> tuple[Met, bool]:
        """Return what a loop or chain does that has not been seen before; whether it is new, not an equal one."""
        call = call_of(item)
        key = (call.text, *(_identity(use) for use in call.uses))
        met = self._same.get(key)
        new = met is None
        if met is None:
            met = self._same[key] = Met(len(self.calls), call)
            self.calls.append(met)
            for dat in call.dats:
                if id(dat) not in self._numbers:
                    self._numbers[id(dat)] = len(self.dats)
                    self.dats.append(dat)
                    self._versions.append(dat.version)
        number = id(item)
        self.known[number] = met
        self._alive[number] = weakref.ref(item, lambda _gone: self._forget(number))
        return met, new

    def _forget(self, number: int) -> None:
        """Another object may get the same ``id``."""
        self.known.pop(number, None)
        self._alive.pop(number, None)

    def number(self, dat: Dat) -> int:
        """Return the number of a dat."""
        return self._numbers[id(dat)]

    def changed(self, now: Met | None = None, steps: int = 0) -> list[Dat]:
        """Return the dats whose values calls have changed so far, and those that the first steps of a call have."""
        past = sorted((met for met in self.calls if met.last), key=lambda met: met.last)
        return changed_before((met.call for met in past), now.call.uses[:steps] if now is not None else ())

    def host_changed(self) -> list[Dat]:
        """Return the dats that no call has changed so far, but the host has since they were first used."""
        by_loops = {id(d) for met in self.calls if met.last for use in met.call.uses for d in use.changed}
        pairs = zip(self.dats, self._versions, strict=True)
        return [d for d, version in pairs if d.version != version and id(d) not in by_loops]

    def held(self) -> list[Dat]:
        """Return the dats that the host may change unseen, through an array over their memory."""
        return [d for d in self.dats if d.viewed and d.watched]

    def period(self, history: Sequence[int]) -> list[Call] | None:
        """Return the calls that come again and again, beginning with the one after ``history``."""
        length = find_period(history)
        return None if length is None else [self.calls[number].call for number in history[-length:]]

    def advice(self) -> Advice:
        """Return what checkpoints would cost at each place of the period.

        Raises
        ------
        CheckpointError
            When no period shows.
        """
        period = self.period(list(self.history))
        if period is None:
            raise CheckpointError(
                f"no period shows in the last {len(self.history)} calls of loops and chains: let the program run for "
                "at least two of its steps while it is watched, then ask for advice"
            )
        return Advice(costs(period, self.changed()))


def _identity(use: object) -> tuple[object, ...]:
    groups = (getattr(use, name) for name in ("needed", "overwritten", "changed", "outputs"))
    return (getattr(use, "name"), *(tuple(id(d) for d in group) for group in groups))


# ---------------------------------------------------------------------------------------- placement


class Placement(ABC):
    """Says, while a checkpoint is due, where it is entered."""

    def arm(self) -> None:  # noqa: B027 - a mark has no memory
        """A checkpoint is due from now on."""

    @abstractmethod
    def step(self, met: Met, record: Record) -> int | None:
        """Return the step of this call before which the checkpoint is entered; None: not in this call."""


def _first(call: Call) -> int:
    return next((k for k, use in enumerate(call.uses) if use.name), 0)


class _Local(Placement):
    """The first loop that overwrites a dat; where there is none, the first that comes a second time."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def arm(self) -> None:
        self._seen.clear()

    def step(self, met: Met, record: Record) -> int | None:
        for k, use in enumerate(met.call.uses):
            if use.overwritten:
                return k
        if met.number in self._seen:
            return _first(met.call)
        self._seen.add(met.number)
        return None


class _Period(Placement):
    """The cheapest place of the period that the recorded sequence has; as `_Local` when it has none."""

    def __init__(self) -> None:
        self._local = _Local()
        self.arm()

    def arm(self) -> None:
        self._ahead: list[Call] = []
        self._last = 0
        self._waited = 0
        self._local.arm()

    def step(self, met: Met, record: Record) -> int | None:
        self._waited += 1
        if self._ahead and self._ahead[0] is met.call:
            self._ahead.pop(0)
            return None if self._ahead else self._last
        history = list(record.history)[:-1]
        period = record.period(history)
        if period is None or period[0] is not met.call or self._waited > _PATIENCE:
            self._ahead = []
            return self._local.step(met, record) if self._waited > _PATIENCE else None
        best = Advice(costs(period, record.changed())).best
        self._ahead, self._last = period[1 : best.call + 1], best.step
        return best.step if best.call == 0 else None


class _Marked(Placement):
    """Where the program says so."""

    def step(self, met: Met, record: Record) -> int | None:
        return _first(met.call)


def placement(name: str) -> Placement:
    """Return the placement of a name.

    Raises
    ------
    CheckpointError
        For an unknown one.
    """
    known: dict[str, Callable[[], Placement]] = {"local": _Local, "period": _Period, "marked": _Marked}
    if name not in known:
        hint = did_you_mean(str(name), known)
        raise CheckpointError(f"place={name!r}: a checkpoint is placed {', '.join(known)}{hint}")
    return known[name]()


@dataclass(frozen=True)
class Choices:
    """How checkpoints are taken, as `fluxloom.dsl.checkpoint.checkpoint.Checkpoints` was told.

    Raises
    ------
    CheckpointError
        For choices that make no sense.
    """

    every: float | None
    every_calls: int | None
    place: str
    keep: int
    digest: str

    def __post_init__(self) -> None:
        every, calls, keep = self.every, self.every_calls, self.keep
        if every is not None and calls is not None:
            raise CheckpointError("every and every_calls are both given: choose one of them")
        if every is None and calls is None and self.place != "marked":
            raise CheckpointError("how often? give every=SECONDS or every_calls=NUMBER")
        if (every is not None and not (isinstance(every, Real) and every >= 0)) or not all(
            isinstance(count, Integral) and count >= 1 for count in (1 if calls is None else calls, keep)
        ):
            raise CheckpointError(
                f"every={every!r}, every_calls={calls!r}, keep={keep!r}: they must be positive, and whole numbers but "
                "for every"
            )
        if not isinstance(self.digest, str):
            raise CheckpointError(f"digest: a text that describes the case is wanted, not {type(self.digest).__name__}")

    def agree(self, comm: Comm, file: str, restart: bool) -> None:
        """Raise `CheckpointError` on every rank unless all were told the same. Collective."""
        mine = {**asdict(self), "digest": zlib.crc32(self.digest.encode()), "file": file, "restart": restart}
        for rank, other in enumerate(found := comm.allgather(mine)):
            for key, value in found[0].items():
                if other[key] != value:
                    shown = "" if key == "digest" else f": {value!r} and {other[key]!r}"
                    raise CheckpointError(f"checkpoints: ranks 0 and {rank} differ in {key}{shown}; give all the same")


# ---------------------------------------------------------------------------------------------- time


class Due:
    """When the next checkpoint is due.

    The clock is looked at every few calls: once in 2 % of the time between checkpoints, but at least every 64th
    call. On several ranks it is that of rank 0, which then tells the others.

    Parameters
    ----------
    every, calls
        Seconds, or calls, between checkpoints; None for both: always.
    clock
        Returns seconds.
    """

    def __init__(self, every: float | None, calls: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.every, self.calls, self.clock = every, calls, clock
        self._comm: Comm | None = None
        self._begin, self._time, self._call, self._stride = 0, 0.0, 0, 1

    def start(self, call: int, comm: Comm) -> None:
        """Count from now, which is call number ``call``."""
        self._comm = comm if comm.size > 1 else None
        self._begin = self._call = call
        self._time = self._asked = self.clock()
        self._stride = 1

    @property
    def next(self) -> int:
        """Number of the call before which `reached` need not be asked."""
        return self._call + self._stride if self.calls is None else self._begin + self.calls

    def reached(self, call: int) -> bool:
        """Whether a checkpoint is due; on several ranks collective."""
        if self.calls is not None:
            return call >= self._begin + self.calls
        if self.every is None:
            return True
        if call < self._call + self._stride:
            return False
        now = self.clock()
        each = (now - self._asked) / max(1, call - self._call)
        wanted = 0.02 * self.every / each if each > 0 else 64
        stride = max(1, min(64, 2 * self._stride, int(min(wanted, 64))))
        found = (now - self._time >= self.every, stride)
        due, self._stride = found if self._comm is None else self._comm.broadcast(found)
        self._call, self._asked = call, now
        return due
