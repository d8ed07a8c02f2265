"""Recursive coordinate bisection of points that are spread over the ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm

__all__ = ["parallel_rcb"]

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_HISTOGRAMS = 1 << 23  # bytes of all histograms that a rank gets in one round, roughly
_SIGN = np.uint64(1 << 63)


def parallel_rcb(comm: Comm, points: Floats, first: int, shares: Floats, weights: Floats) -> npt.NDArray[np.int32]:
    """Partition points as `fluxloom.graph.partition_rcb` does, without bringing them together. Collective.

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
        Weight of each of this rank's points.

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
        slot = np.full(low.size, -1)
        slot[cut] = np.arange(cut.size)
        mine = np.flatnonzero(slot[group] >= 0)
        aim = np.stack([ends[middle] - ends[low], ends[high] - ends[low]])[:, cut]
        least = np.stack([middle - low, high - middle])[:, cut]
        left = _halve(comm, points[mine], numbers[mine], bits, slot[group[mine]], weights[mine], aim, least)
        right = np.zeros(len(points), dtype=bool)
        right[mine] = ~left
        new_low, new_high = np.stack([low, middle], axis=1), np.stack([middle, high], axis=1)
        group = 2 * group + right
        kept = np.flatnonzero((new_high > new_low).reshape(-1))
        place = np.full(2 * low.size, -1)
        place[kept] = np.arange(kept.size)
        group = place[group]
        low, high = new_low.reshape(-1)[kept], new_high.reshape(-1)[kept]
    return low[group].astype(np.int32)


def _halve(
    comm: Comm, points: Floats, numbers: Keys, bits: int, group: Ints, weights: Floats, aim: Floats, least: Ints
) -> npt.NDArray[np.bool_]:
    """Return which points lie below the cut of their group.

    ``aim`` is the share of the lower half and of both, ``least`` how many points each half needs at least.
    """
    groups, dimensions = aim.shape[1], points.shape[1]
    lowest = np.full((groups, dimensions), np.inf)
    highest = np.full((groups, dimensions), -np.inf)
    for axis in range(dimensions):
        np.minimum.at(lowest[:, axis], group, points[:, axis])
        np.maximum.at(highest[:, axis], group, points[:, axis])
    lowest, highest = comm.reduce(lowest, "min"), comm.reduce(highest, "max")
    axes = np.argmax(highest - lowest, axis=1)
    every = np.arange(groups)
    base = _sortable(lowest[every, axes])
    span = _sortable(highest[every, axes]) - base
    keys = _sortable(points[np.arange(len(points)), axes[group]]) - base[group]
    table = _Table(comm, (keys, numbers), (max(int(span.max()).bit_length(), 1), bits), group, groups)
    total, count = comm.reduce(_sums(group, weights, groups), "sum")
    due = aim[0] * total / aim[1]
    cut = table.crossing(weights, due)
    left = cut.count + (cut.before + 0.5 * cut.weight < due)
    wanted = np.minimum(np.maximum(left, least[0]), count - least[1])
    if (wanted != left).any():
        cut = table.crossing(np.ones(len(points)), wanted)
        left = wanted
    key, number = cut.keys[0][group], cut.keys[1][group]
    takes = (left > cut.count)[group]
    return (keys < key) | ((keys == key) & ((numbers < number) | ((numbers == number) & takes)))


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

    def crossing(self, weights: Floats, aim: Floats) -> _Crossing:
        """Find the crossing points by histograms of ever lower bits."""
        digit_bits = int(np.clip(np.log2(_HISTOGRAMS / (16 * self.groups * self.comm.size)), 2, 10))
        bins, every = 1 << digit_bits, np.arange(self.groups)
        before, count, weight = np.zeros(self.groups), np.zeros(self.groups), np.zeros(self.groups)
        alive = np.arange(self.group.size)
        found: list[Keys] = []
        for key, bits in zip(self.keys, self.bits, strict=True):
            value = np.zeros(self.groups, dtype=np.uint64)
            for shift in range((bits - 1) // digit_bits * digit_bits, -1, -digit_bits):
                digit = ((key[alive] >> np.uint64(shift)) & np.uint64(bins - 1)).astype(np.int64)
                group = self.group[alive]
                own = _sums(group * bins + digit, weights[alive], self.groups * bins)
                heavy, many = self.comm.reduce(own, "sum").reshape(2, self.groups, bins)
                reached = before[:, None] + np.cumsum(heavy, axis=1)
                chosen = _first_bin((reached >= aim[:, None]) & (many > 0), many)
                weight = heavy[every, chosen]
                below = np.arange(bins) < chosen[:, None]
                before = before + np.where(below, heavy, 0.0).sum(axis=1)
                count = count + np.where(below, many, 0.0).sum(axis=1)
                value |= chosen.astype(np.uint64) << np.uint64(shift)
                alive = alive[digit == chosen[group]]
            found.append(value)
        return _Crossing((found[0], found[1]), before, count, weight)


def _sums(place: Ints, weights: Floats, size: int) -> Floats:
    """Return for each of ``size`` places the weight and the number of what lies there."""
    # of nothing, NumPy counts integers
    return np.stack([np.bincount(place, weights, size), np.bincount(place, minlength=size)]).astype(np.float64)


def _first_bin(good: npt.NDArray[np.bool_], many: Floats) -> Ints:
    """Return the first good bin of each group, or the last that is not empty when round-off leaves none."""
    last = many.shape[1] - 1 - np.argmax(many[:, ::-1] > 0, axis=1)
    return np.where(good.any(axis=1), np.argmax(good, axis=1), last)


def _sortable(values: Floats) -> Keys:
    """Return unsigned integers in the order of finite numbers."""
    raw = np.ascontiguousarray(values).view(np.uint64)
    return np.where(raw & _SIGN, ~raw, raw | _SIGN)
