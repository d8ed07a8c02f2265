"""Lazy evaluation: loops are put off until somebody wants a result, and then run as one chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fluxloom.core.errors import LoopError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.observe import Observer
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.tiles.owners import cache_bytes
from fluxloom.dsl.tiles.tiling import TiledChain

__all__ = ["LazyLoops", "lazy"]

_SEQUENCES = 16
"""Sequences of loops whose chains are kept; each may have tables and buffers of its own."""


@dataclass(frozen=True, eq=False)
class _Call:
    """A loop that waits, and the constants it was called with."""

    loop: Loop
    constants: dict[str, Any]


@dataclass(eq=False)
class _Sequence:
    """Loops that have run one after the other, and the chain that runs them from the second time on."""

    loops: tuple[Loop, ...]
    chain: Chain | TiledChain | None = None


class LazyLoops(Observer):
    """The loops of a context that wait; see `lazy`.

    Attributes
    ----------
    context
        Whose loops they are.
    waiting
        Names of the loops that wait, in order.
    """

    def __init__(self, context: Context, longest: int) -> None:
        self.context, self.longest = context, longest
        self._queue: list[_Call] = []

    @property
    def waiting(self) -> list[str]:
        """Names of the loops that wait, in order."""
        return [call.loop.name for call in self._queue]

    @property
    def chains(self) -> list[Chain | TiledChain]:
        """The chains that were made of sequences which occurred more than once."""
        return [s.chain for s in self._sequences.values() if s.chain is not None]

    @property
    def _sequences(self) -> dict[tuple[int, ...], _Sequence]:
        return self.context.plans.setdefault(("lazy",), {})

    # ------------------------------------------------------------------------------- as an observer
    def loop(self, loop: Loop) -> bool:
        """Put a loop off, unless an array over its data is alive, which shows when it runs.

        One that already waits with other constants, and all others, run first.
        """
        if any(a.data.viewed and a.data.watched for a in loop.bound.arguments if isinstance(a.data, Dat)):
            self.settle()
            return False
        if any(call.loop is loop and call.constants != loop.constants for call in self._queue):
            self.settle()
        self._queue.append(_Call(loop, dict(loop.constants)))
        if len(self._queue) >= self.longest:
            self._run(self._whole_periods())
        return True

    def chain(self, chain: Chain) -> bool:
        """Run what waits; the chain then runs by itself, at once."""
        self.settle()
        return False

    def settle(self) -> None:
        """Run what waits."""
        self._run(len(self._queue))

    # ------------------------------------------------------------------------------------- running
    def _whole_periods(self) -> int:
        """Return how many of the waiting calls are whole repetitions of the shortest sequence that repeats."""
        keys = [id(call.loop) for call in self._queue]
        n = len(keys)
        for period in range(1, n // 2 + 1):
            if keys[period:] == keys[: n - period]:
                return n // period * period
        return n

    def _run(self, count: int) -> None:
        """Run the first calls that wait, with the constants they were called with."""
        if not count:
            return
        calls, self._queue = self._queue[:count], self._queue[count:]
        now = {id(c.loop): (c.loop, dict(c.loop.constants)) for c in calls}
        context, observer = self.context, self.context.observer
        context.observer = None
        try:
            for call in calls:
                if call.loop.constants != call.constants:
                    call.loop.follow(call.constants)
            self._replay(tuple(call.loop for call in calls))
        except Exception as error:
            error.add_note("raised by loops that were put off: " + ", ".join(c.loop.name for c in calls))
            raise
        finally:
            for loop, constants in now.values():
                if loop.constants != constants:
                    loop.follow(constants)
            context.observer = observer

    def _replay(self, loops: tuple[Loop, ...]) -> None:
        known = self._sequences
        key = tuple(id(loop) for loop in loops)
        found = known.pop(key, None)
        if found is None:
            # A sequence that occurs once is not worth a chain.
            known[key] = _Sequence(loops)
            for old in list(known)[:-_SEQUENCES]:
                del known[old]
            for loop in loops:
                loop()
            return
        known[key] = found  # the latest is the last to be forgotten
        if found.chain is None:
            found.chain = _chain(loops)
        found.chain()


def _chain(loops: Sequence[Loop]) -> Chain | TiledChain:
    """Return loops as a chain; in tiles, where the device has them and the caches cannot hold what is touched."""
    tiled = TiledChain(loops, name="lazy")
    dats = unique(a.data for loop in loops for a in loop.bound.arguments)
    touched = sum(d.buffer.nbytes for d in dats)
    return tiled if tiled.tiled and touched > cache_bytes(3) else Chain(loops, name="lazy")


@contextmanager
def lazy(context: Context, *, longest: int = 24) -> Iterator[LazyLoops]:
    """Put the loops of a context off inside a ``with`` block, and run them together.

    They run when the host reads or writes a dat or a global, when a chain is called, when ``longest`` of them wait,
    and at the end of the block. A sequence of loops that has occurred before runs as a chain: in tiles
    on a CPU when its data are larger than the caches, else fused. The results are those without the block.

    Parameters
    ----------
    context
        Whose loops are put off.
    longest
        Loops that may wait. When they repeat a shorter sequence, whole repetitions run.

    Yields
    ------
    LazyLoops
        What waits. Inside another such block of the context it is that of the outer one, which goes on.

    Raises
    ------
    LoopError
        If it is no context, something else already watches its loops, or it is one of several ranks, which would
        have to run their loops at the same moments.

    Notes
    -----
    A loop has the constants with which it was called, even if they change before it runs. When the block
    is left by an exception, the loops that were called before it still run.
    """
    if not isinstance(context, Context):
        raise LoopError(f"lazy: the context of the loops is wanted, not {type(context).__name__}")
    if not isinstance(longest, int) or longest < 1:
        raise LoopError(f"longest={longest!r}: at least one loop has to wait, and a whole number of them")
    if context.distributed:
        raise LoopError("lazy: ranks would run their loops at different moments; put the loops into a Chain")
    outer = context.observer
    if isinstance(outer, LazyLoops):
        yield outer
        return
    if outer is not None:
        raise LoopError(f"lazy: a {type(outer).__name__} already watches the loops of this context; end it first")
    loops = LazyLoops(context, longest)
    context.observer = loops
    try:
        yield loops
    finally:
        try:
            loops.settle()
        finally:
            context.observer = None
