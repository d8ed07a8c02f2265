"""How a device groups the rows of a ragged loop: a rule for the first call, and a search while the loop works.

Source: I. Z. Reguly, "Algorithms for unstructured grids on parallel heterogeneous hardware", PhD thesis,
Pázmány Péter Catholic University, Budapest, 2014, section 4.5 (the parametrised product of a sparse matrix
with a vector, its fixed rule and its run-time tuner).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf
from typing import NamedTuple

from fluxloom.core.errors import FluxloomError
from fluxloom.perf.tuner import Search

__all__ = ["LANES", "MOST_BLOCK", "Grouping", "OnlineTuner", "measured_rule"]

LANES = (1, 2, 4, 8, 16, 32)
"""Work items that may share a row; no more than run in step on every device."""

LEAST_BLOCK, MOST_BLOCK = 64, 512
"""Work items a group: the range of the search."""

_BLOCK = 128
_STEP = 32
_LANE_BYTES, _MANY_BYTES = 48, 64
_ITEMS = 1 << 18
_MOST_REPEAT = 1024

_SENSITIVE = 0.05
"""A relative change beyond which the number of repeats is searched before the number of lanes."""

_DOUBT = 0.05
"""Points within this of the best are measured a second time before the search ends."""

_TRIALS = 10
_FINALISTS = 3


class Grouping(NamedTuple):
    """How the rows of a ragged loop are spread over work items.

    Attributes
    ----------
    block
        Work items a group.
    lanes
        Work items that share a row; a power of two.
    repeat
        Rows that each team of ``lanes`` works on, one after the other.
    """

    block: int
    lanes: int
    repeat: int

    @property
    def rows(self) -> int:
        """Rows a group: ``repeat * block / lanes``."""
        return self.repeat * self.block // self.lanes

    def groups(self, rows: int) -> int:
        """Return how many groups ``rows`` rows need."""
        return -(-rows * self.lanes // (self.repeat * self.block))


def measured_rule(rows: int, entries: int, nbytes: int = 12, *, items: int = _ITEMS) -> Grouping:
    """Return the grouping that measurements on a present-day GPU suggest, from three numbers.

    ::

        block  = 128
        lanes  = the largest power of two that leaves each lane 48 bytes of a row, at most entries / rows;
                 doubled while the lanes of all rows do not fill the device
        repeat = 2 for entries of 64 bytes and more whose lanes fill the device twice, else 1

    Parameters
    ----------
    rows, entries
        Rows of the ragged map, and their entries in all.
    nbytes
        Bytes of an entry: its values and its place in a table; 12 for a matrix in double precision.
    items
        Work items that the device holds at once.

    Notes
    -----
    On an H200 the product of a matrix and a vector in double precision runs with this grouping within 5 % of the
    best of 36 for rows of 7, 12, 18, 45, 53, 81 and 398 entries. The rule of the source, made for a device of 2011 with
    smaller caches, has more lanes and far more repeats there and takes up to twice as long as the best. Sixteen numbers
    an entry, 14 entries a row, stored component by component: four times as fast as one item a row.
    """
    if rows <= 0:
        return Grouping(_BLOCK, 1, 1)
    mean = entries / rows
    lanes = next((n for n in reversed(LANES) if n * _LANE_BYTES <= mean * nbytes and n <= mean), 1)
    while rows * lanes < items and 2 * lanes <= min(mean, LANES[-1]):
        lanes *= 2
    return Grouping(_BLOCK, lanes, 2 if nbytes >= _MANY_BYTES and lanes > 1 and rows * lanes >= 2 * items else 1)


class OnlineTuner(Search[Grouping]):
    """Improves the grouping of a loop while the loop does useful work: one trial a call.

    ::

        tuner = OnlineTuner(measured_rule(rows, entries))
        while working:
            grouping = tuner.next()     # run with this one
            tuner.observe(seconds)      # it took so long

    The search of the source:

    1. Halve ``repeat``. If the time changes by more than 5 %, do step 3 next, else step 2.
    2. Double ``lanes``, with groups of 192; while that helps double on; if it never did, halve instead.
    3. Change ``repeat`` on in the direction that helped.
    4. Change ``block`` by 32 while that helps, up, else down.

    Where this one departs from it, and why:

    - Each step starts from the best point so far, and `next` returns the best when the search is over; the
      source keeps the last point, which may be one that a disturbed measurement let pass.
    - Step 2 follows step 3 when step 3 came first: lanes matter most (a factor of ten between best and worst),
      and a device that is sensitive to ``repeat`` is no less so to lanes.
    - Step 2 changes ``repeat`` with ``lanes``, so that a group keeps its rows. Twice the lanes alone mean twice the
      groups, whose cost hides what the lanes gain; the larger block of the source undoes a part of that.
    - Steps 3 and 4 lengthen their stride while they go on to help (``repeat`` by 2, then 4; ``block`` by 32, 64,
      128), and step 3 turns round when its direction does not help, so that a start which is far off costs a few
      trials instead of ten.
    - After the search the points within 5 % of the best are measured once more: what counts is the lower median
      of everything observed for a point.

    Parameters
    ----------
    start
        The first trial.
    limit
        Trials of the search, at most; the second measurements of the finalists come on top.
    allowed
        Whether a grouping can run at all (a device may bound the block); by default every one can.

    Raises
    ------
    FluxloomError
        If the start is no grouping: lanes not one of `LANES`, a block that they do not divide, no repeat.
    """

    def __init__(
        self, start: Grouping, *, limit: int = _TRIALS, allowed: Callable[[Grouping], bool] | None = None
    ) -> None:
        if start.lanes not in LANES or start.block < 1 or start.block % start.lanes or start.repeat < 1:
            raise FluxloomError(f"{start}: lanes are one of {LANES}, block a multiple of lanes, repeat at least 1")
        self._limit, self._allowed = max(1, limit), allowed
        super().__init__(self._search(start))

    # -------------------------------------------------------------------------------------- the search
    def _search(self, start: Grouping) -> Generator[Grouping, None, None]:
        """Yield the points to try; each has been observed when the generator goes on."""
        yield start
        base = self.time(start)
        halved = start._replace(repeat=max(1, start.repeat // 2))
        if halved != start:
            yield halved
        down = self.time(halved) < base or halved == start
        change = abs(self.time(halved) / base - 1.0) if 0 < base < inf else inf
        if change > _SENSITIVE:
            yield from self._repeat(down)
            yield from self._lanes()
        else:
            yield from self._lanes()
            yield from self._repeat(down)
        yield from self._block()
        for point in sorted(self.tried, key=self.time)[:_FINALISTS]:
            if sum(t.point == point for t in self.trials) == 1 and self.time(point) <= (1.0 + _DOUBT) * self.seconds:
                yield point

    def _follow(self, move: Callable[[Grouping, int], Grouping]) -> Generator[Grouping, None, bool]:
        """Move on from the best point while that helps; return whether it ever did."""
        helped = 0
        while len(self.tried) < self._limit:
            before, seconds = self.best, self.seconds
            point = move(before, helped)
            if point in self.tried or not self._possible(point):
                break
            yield point
            if not self.time(point) < seconds:
                break
            helped += 1
        return helped > 0

    def _possible(self, point: Grouping) -> bool:
        inside = LEAST_BLOCK <= point.block <= MOST_BLOCK and 1 <= point.repeat <= _MOST_REPEAT
        whole = point.lanes in LANES and point.block % point.lanes == 0
        return inside and whole and (self._allowed is None or self._allowed(point))

    def _lanes(self) -> Generator[Grouping, None, None]:
        def more(point: Grouping, _: int) -> Grouping:
            return point._replace(lanes=2 * point.lanes, repeat=2 * point.repeat)

        def fewer(point: Grouping, _: int) -> Grouping:
            return point._replace(lanes=point.lanes // 2, repeat=max(1, point.repeat // 2))

        if not (yield from self._follow(more)):
            yield from self._follow(fewer)

    def _repeat(self, down: bool) -> Generator[Grouping, None, None]:
        def fewer(point: Grouping, helped: int) -> Grouping:
            return point._replace(repeat=max(1, point.repeat >> min(helped + 1, 2)))

        def more(point: Grouping, helped: int) -> Grouping:
            return point._replace(repeat=point.repeat << min(helped + 1, 2))

        if not (down and (yield from self._follow(fewer))):
            yield from self._follow(more)

    def _block(self) -> Generator[Grouping, None, None]:
        def step(sign: int) -> Callable[[Grouping, int], Grouping]:
            def move(point: Grouping, helped: int) -> Grouping:
                wanted = point.block + sign * (_STEP << helped)
                return point._replace(block=min(MOST_BLOCK, max(LEAST_BLOCK, wanted)))

            return move

        if not (yield from self._follow(step(1))):
            yield from self._follow(step(-1))
