"""Recursive coordinate bisection of points that are spread over the ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import CHUNK

__all__ = ["parallel_rcb"]

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_HISTOGRAMS = 1 << 23  # bytes of all histograms that a rank gets in one round, roughly
_SIGN = np.uint64(1 << 63)


def parallel_rcb(
    comm: Comm, points: Floats, first: int, shares: Floats, weights: Floats | None = None
) -> npt.NDArray[np.int32]:
    """Partition points as `fluxloom.graph.partition.partition_rcb` does, without bringing them together. Collective.

    All groups of a level are cut at once. The cut is found by histograms of the leading bits of the coordinates,
    then of the next bits of what fell into the bin that holds the cut, and so on, and in the end of the global
    numbers of points with equal coordinates: a rank sees some kilobytes of the others for each group.
    The parts are those of the serial function, bit for bit, when the sums of the weights are exact (integers);
    else a point whose middle lies on the cut up to round-off may change sides.

    Parameters
    ----------
    comm
        The ranks.
    points
        Those of this rank, ``(n, dimensions)``, finite.
    first
        Global number of the first of them; ranks hold consecutive points.
    shares
        What each part gets; they need not add up to 1.
    weights
        Weight of each of this rank's points; 1 by default.

    Returns
    -------
    part : int32, shape (n,)
        Part of each of this rank's points.
    """
    group = np.zeros(len(points), dtype=np.int64)
    numbers = np.arange(first, first + len(points), dtype=np.uint64)
    low, high = np.array([0]), np.array([shares.size])
    ends = np.concatenate([[0.0], np.cumsum(shares)])
    bits = max(int(comm.reduce(np.array([first + len(points)]), "max")[0]).bit_length(), 1)
    while (high - low > 1).any():
        middle = np.where(high - low > 1, low + (high - low) // 2, high)
        cut = np.flatnonzero(high - low > 1)
        aim = np.stack([ends[middle] - ends[low], ends[high] - ends[low]])[:, cut]
        least = np.stack([middle - low, high - middle])[:, cut]
        right = np.zeros(len(points), dtype=bool)
        if cut.size == low.size:
            right = _halve(comm, _Points(points, numbers, weights, group, cut.size), bits, aim, least)
        else:
            slot = np.full(low.size, -1)
            slot[cut] = np.arange(cut.size)
            mine = np.flatnonzero(slot[group] >= 0)
            own = None if weights is None else weights[mine]
            some = _Points(points[mine], numbers[mine], own, slot[group[mine]], cut.size)
            right[mine] = _halve(comm, some, bits, aim, least)
        new_low, new_high = np.stack([low, middle], axis=1), np.stack([middle, high], axis=1)
        group *= 2
        group += right
        kept = np.flatnonzero((new_high > new_low).reshape(-1))
        place = np.full(2 * low.size, -1)
        place[kept] = np.arange(kept.size)
        if kept.size < place.size:
            group = place[group]
        low, high = new_low.reshape(-1)[kept], new_high.reshape(-1)[kept]
    return low.astype(np.int32)[group]


@dataclass(frozen=True, eq=False)
class _Points:
    """Points of this rank in groups that are cut; the weight of each is 1 if there are none."""

    points: Floats
    numbers: Keys
    weights: Floats | None
    group: Ints
    groups: int

    def pieces(self) -> list[slice]:
        """Return the points by ranges, so that intermediate arrays stay in the caches."""
        return [slice(begin, begin + CHUNK) for begin in range(0, len(self.points), CHUNK)]

    def extent(self, comm: Comm) -> tuple[Floats, Floats]:
        """Return the lowest and the highest coordinates of each group, of all ranks: ``(groups, dimensions)``."""
        lowest = np.full((self.groups, self.points.shape[1]), np.inf)
        highest = np.full_like(lowest, -np.inf)
        for axis, values in enumerate(self.points.T):
            if self.groups == 1:
                lowest[0, axis], highest[0, axis] = values.min(initial=np.inf), values.max(initial=-np.inf)
            else:
                np.minimum.at(lowest[:, axis], self.group, values)
                np.maximum.at(highest[:, axis], self.group, values)
        return comm.reduce(lowest, "min"), comm.reduce(highest, "max")

    def keys(self, axes: Ints, base: Keys) -> Keys:
        """Return the coordinate of each point along the axis of its group as an integer, less the group's base."""
        found = np.empty(len(self.points), dtype=np.uint64)
        for piece in self.pieces():
            group = self.group[piece]
            values = np.take_along_axis(self.points[piece], axes[group][:, None], axis=1)[:, 0]
            found[piece] = _sortable(values) - base[group]
        return found


def _halve(comm: Comm, own: _Points, bits: int, aim: Floats, least: Ints) -> npt.NDArray[np.bool_]:
    """Return which points lie above the cut of their group.

    ``aim`` is the share of the lower half and of both, ``least`` how many points each half needs at least.
    """
    lowest, highest = own.extent(comm)
    axes = np.argmax(highest - lowest, axis=1)
    every = np.arange(own.groups)
    base = _sortable(lowest[every, axes])
    span = _sortable(highest[every, axes]) - base
    keys = own.keys(axes, base)
    table = _Table(comm, (keys, own.numbers), (max(int(span.max()).bit_length(), 1), bits), own.group, own.groups)
    sums = _Sums(own.groups)
    for piece in own.pieces():
        sums.add(own.group[piece], None if own.weights is None else own.weights[piece])
    total, count = comm.reduce(sums.found(), "sum")
    due = aim[0] * total / aim[1]
    cut = table.crossing(own.weights, due)
    left = cut.count + (cut.before + 0.5 * cut.weight < due)
    wanted = np.minimum(np.maximum(left, least[0]), count - least[1])
    if (wanted != left).any():
        cut = table.crossing(None, wanted)
        left = wanted
    above = np.empty(len(keys), dtype=bool)
    takes = left > cut.count
    for piece in own.pieces():
        key, number, group = keys[piece], own.numbers[piece], own.group[piece]
        at = cut.keys[0][group]
        same = np.flatnonzero(key == at)
        above[piece] = key > at
        behind, group = cut.keys[1][group[same]], group[same]
        above[piece][same] = (number[same] > behind) | ((number[same] == behind) & ~takes[group])
    return above


@dataclass(frozen=True, eq=False)
class _Crossing:
    """For each group the point at which the weight of the points up to it first reaches what was asked for."""

    keys: tuple[Keys, Keys]
    before: Floats
    count: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class _Table:
    """Points of groups, ordered by two keys of some bits."""

    comm: Comm
    keys: tuple[Keys, Keys]
    bits: tuple[int, int]
    group: Ints
    groups: int

    def crossing(self, weights: Floats | None, aim: Floats) -> _Crossing:
        """Find the crossing points by histograms of ever lower bits."""
        digit_bits = int(np.clip(np.log2(_HISTOGRAMS / (16 * self.groups * self.comm.size)), 2, 10))
        bins, every = 1 << digit_bits, np.arange(self.groups)
        before, count, weight = np.zeros(self.groups), np.zeros(self.groups), np.zeros(self.groups)
        alive: list[slice | Ints] = [slice(k, k + CHUNK) for k in range(0, self.group.size, CHUNK)]
        found: list[Keys] = []
        for key, bits in zip(self.keys, self.bits, strict=True):
            value = np.zeros(self.groups, dtype=np.uint64)
            for shift in range((bits - 1) // digit_bits * digit_bits, -1, -digit_bits):
                sums = _Sums(self.groups * bins)
                for some in alive:
                    place = self.group[some] * bins + _digit(key[some], shift, bins)
                    sums.add(place, None if weights is None else weights[some])
                heavy, many = self.comm.reduce(sums.found(), "sum").reshape(2, self.groups, bins)
                reached = before[:, None] + np.cumsum(heavy, axis=1)
                chosen = _first_bin((reached >= aim[:, None]) & (many > 0), many)
                weight = heavy[every, chosen]
                below = np.arange(bins) < chosen[:, None]
                before = before + np.where(below, heavy, 0.0).sum(axis=1)
                count = count + np.where(below, many, 0.0).sum(axis=1)
                value |= chosen.astype(np.uint64) << np.uint64(shift)
                left = [_taken(some, _digit(key[some], shift, bins) == chosen[self.group[some]]) for some in alive]
                few = sum(some.size for some in left) <= CHUNK
                alive = [np.concatenate([np.zeros(0, dtype=np.int64), *left])] if few else [*left]
            found.append(value)
        return _Crossing((found[0], found[1]), before, count, weight)


def _digit(keys: Keys, shift: int, bins: int) -> Ints:
    """Return some bits of keys, the lowest of them at ``shift``; ``bins`` is a power of two."""
    return ((keys >> np.uint64(shift)) & np.uint64(bins - 1)).view(np.int64)


def _taken(some: slice | Ints, good: npt.NDArray[np.bool_]) -> Ints:
    """Return the good ones of some places."""
    places = np.flatnonzero(good)
    return places + some.start if isinstance(some, slice) else some[places]


class _Sums:
    """The weight and the number of what lies in each of ``size`` places, added up in order."""

    def __init__(self, size: int) -> None:
        self._many = np.zeros(size, dtype=np.int64)
        self._heavy: Floats | None = None

    def add(self, place: Ints, weights: Floats | None) -> None:
        """Add what lies in some places; weights are 1 by default, and always given or never."""
        self._many += np.bincount(place, minlength=self._many.size)
        if weights is not None:
            if self._heavy is None:
                self._heavy = np.zeros(self._many.size)
            np.add.at(self._heavy, place, weights)

    def found(self) -> Floats:
        """Return weights and numbers, ``(2, size)``."""
        heavy = self._many if self._heavy is None else self._heavy
        return np.stack([heavy, self._many]).astype(np.float64)


def _first_bin(good: npt.NDArray[np.bool_], many: Floats) -> Ints:
    """Return the first good bin of each group, or the last that is not empty when round-off leaves none."""
    last = many.shape[1] - 1 - np.argmax(many[:, ::-1] > 0, axis=1)
    return np.where(good.any(axis=1), np.argmax(good, axis=1), last)


def _sortable(values: Floats) -> Keys:
    """Return unsigned integers in the order of finite numbers; those of both zeros are the same."""
    raw = (values + 0.0).view(np.uint64)
    return np.where(raw & _SIGN, ~raw, raw | _SIGN)
