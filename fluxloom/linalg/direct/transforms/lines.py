"""The lines of two arrays along an axis: two axes of them at a time, whatever their steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fluxloom.device.transforms.dft import merged
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.transforms.kernels import TILE

__all__ = ["Block", "blocks_of"]


@dataclass(frozen=True)
class Block:
    """Lines of two arrays: ``outers * lanes`` of them, with the numbers of their first values."""

    lanes: int
    outers: int
    firsts: tuple[int, int]
    lane_steps: tuple[int, int]
    outer_steps: tuple[int, int]

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.lanes * self.outers

    def part(self, outer: int, outers: int, lane: int, lanes: int) -> Block:
        """Return some of the lines."""
        first, second = (
            f + outer * o + lane * s for f, o, s in zip(self.firsts, self.outer_steps, self.lane_steps, strict=True)
        )
        return replace(self, firsts=(first, second), outers=outers, lanes=lanes)

    def parts(self, most: int) -> Iterator[Block]:
        """Yield parts of equal size, about, that have at most so many lines, or a tile of them."""
        if self.lines <= most:
            yield self
        elif self.lanes <= most:
            step = _even(self.outers, most // self.lanes)
            for outer in range(0, self.outers, step):
                yield self.part(outer, min(step, self.outers - outer), 0, self.lanes)
        else:
            step = -(-_even(self.lanes, most) // TILE) * TILE
            for outer, lane in itertools.product(range(self.outers), range(0, self.lanes, step)):
                yield self.part(outer, 1, lane, min(step, self.lanes - lane))


def _even(length: int, most: int) -> int:
    """Return the largest of the fewest equal parts of a length."""
    return -(-length // -(-length // most))


def blocks_of(source: DeviceArray, target: DeviceArray, axis: int) -> list[Block]:
    """Return the lines of two arrays of real numbers along an axis, in an order that fits both."""
    others = [k for k in range(len(source.shape)) if k != axis]
    axes = merged(*([values[k] for k in others] for values in (source.shape, source.strides, target.strides)))
    axes = [(1, 0, 0)] * (2 - len(axes)) + axes
    (outers, *outer_steps), (lanes, *lane_steps) = axes[-2:]
    found = []
    for place in itertools.product(*(range(length) for length, _, _ in axes[:-2])):
        skipped = [sum(i * item[1 + m] for i, item in zip(place, axes, strict=False)) for m in (0, 1)]
        found.append(
            Block(
                lanes, outers, (source.first + skipped[0], target.first + skipped[1]),
                (lane_steps[0], lane_steps[1]), (outer_steps[0], outer_steps[1]),
            )
        )  # fmt: skip
    return found
