"""Copies of boxes of values between arrays, whatever their steps: what packs messages, and unpacks them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.device.base import Buffer, Call, Device
from fluxloom.device.transforms.dft import merged
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Primitive

__all__ = ["Mover", "Place"]

_AXES = 5
"""Axes of a copy, the one within a value included; the last one lies together."""

_BLOCK = 128
_TURNS = 8
"""Words that a work item copies."""

_SPAN = 1 << 15
"""Words that a thread copies at once."""

_WORDS = {4: "int32_t", 8: "int64_t"}

_COUNTS = [f"n{k}" for k in range(_AXES)]
_FROM = [f"s{k}" for k in range(_AXES)]
_TO = [f"t{k}" for k in range(_AXES)]

_PLAIN = """
    const int64_t units = n0 * n1 * n2 * n3 * pieces;
#pragma omp parallel for schedule(static) num_threads(fl_threads(threads)) if (threads != 1 && units * span > 16384)
    for (int64_t unit = 0; unit < units; unit++) {
        const int64_t begin = unit % pieces * span, count = n4 - begin < span ? n4 - begin : span, row = unit / pieces;
        const int64_t i3 = row % n3, i2 = row / n3 % n2, i1 = row / n3 / n2 % n1, i0 = row / n3 / n2 / n1;
        const WORD *const from = source + source_first + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3 + begin * s4;
        WORD *const to = target + target_first + i0 * t0 + i1 * t1 + i2 * t2 + i3 * t3 + begin * t4;
        if (s4 == 1 && t4 == 1)
            memcpy(to, from, (size_t)count * sizeof(WORD));
        else
            for (int64_t k = 0; k < count; k++) to[k * t4] = from[k * s4];
    }
"""

_KERNEL = """
    const int64_t unit = FL_ITEM >> shift, lanes = INT64_C(1) << shift, units = n0 * n1 * n2 * n3 * pieces;
    if (unit < units) {
        int64_t i0, i1, i2, i3, begin;
        if (units < INT32_MAX) { /* divisions of 64 bits take several times as long */
            const uint32_t row = (uint32_t)unit / (uint32_t)pieces;
            const uint32_t a = row / (uint32_t)n3, b = a / (uint32_t)n2, c = b / (uint32_t)n1;
            begin = (uint32_t)unit - row * (uint32_t)pieces;
            i3 = row - a * (uint32_t)n3, i2 = a - b * (uint32_t)n2, i1 = b - c * (uint32_t)n1, i0 = c;
        } else {
            const int64_t row = unit / pieces, a = row / n3, b = a / n2, c = b / n1;
            begin = unit - row * pieces;
            i3 = row - a * n3, i2 = a - b * n2, i1 = b - c * n1, i0 = c;
        }
        const int64_t from = source_first + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3;
        const int64_t to = target_first + i0 * t0 + i1 * t1 + i2 * t2 + i3 * t3;
        const int64_t first = begin * span, end = first + span < n4 ? first + span : n4;
        for (int64_t k = first + (FL_ITEM & (lanes - 1)); k < end; k += lanes)
            target[to + k * t4] = source[from + k * s4];
    }
"""


@dataclass(frozen=True)
class Place:
    """Where a box of values lies: in which memory, its first value there, and the steps along each axis, in values."""

    buffer: Buffer
    first: int
    steps: tuple[int, ...]

    @classmethod
    def of(cls, array: DeviceArray, begin: tuple[int, ...] = ()) -> Place:
        """Return the place of a box within an array, which begins at some index."""
        skipped = sum(b * step for b, step in zip(begin, array.strides, strict=False))
        return cls(array.buffer, array.first + skipped, array.strides)

    @classmethod
    def dense(cls, buffer: Buffer, shape: tuple[int, ...], first: int = 0) -> Place:
        """Return the place of a box whose values lie one after the other."""
        return cls(buffer, first, tuple(prod(shape[k + 1 :]) for k in range(len(shape))))


class Mover:
    """Copies boxes of values of one type on a device.

    Parameters
    ----------
    device
        Where.
    dtype
        Real or complex, of 4, 8 or 16 bytes.
    threads
        That may share a copy, on a processor.
    """

    def __init__(self, device: Device, dtype: npt.DTypeLike, threads: int = 1) -> None:
        size = np.dtype(dtype).itemsize
        self._width = min(8, size)
        self._parts = size // self._width
        self._threads = threads
        word = _WORDS[self._width]
        last = "shift" if device.items else "threads"
        sizes = ["source_first", "target_first", *_COUNTS, *_FROM, *_TO, "pieces", "span", last]
        body = _KERNEL if device.items else _PLAIN.replace("WORD", word)
        parameters = (
            Parameter(f"{word} *", "source", shared=True),
            Parameter(f"{word} *", "target", written=True, shared=True),
            *(Parameter("int64_t", name) for name in sizes),
        )
        self._items = device.items
        function = Function("fl_move", parameters, body, _BLOCK if device.items else 1)
        self._primitive = Primitive(device, [function], "copies of boxes")

    def call(self, shape: tuple[int, ...], source: Place, target: Place, name: str = "move") -> Call:
        """Return the call that copies a box.

        Parameters
        ----------
        shape
            Values along each axis: after neighbouring axes that lie together are taken as one, at most four.
        source, target
            Where the values are, and where they are wanted; the two do not overlap.
        """
        parts = self._parts
        ends = [(*(step * parts for step in place.steps), 1) for place in (source, target)]
        axes = merged((*shape, parts), *ends)
        if len(axes) > _AXES:
            raise ValueError(f"a copy of {len(axes)} axes: at most {_AXES} that do not lie together are possible")
        axes = axes or [(1, 1, 1)]
        axes = [(1, 0, 0)] * (_AXES - len(axes)) + axes
        counts = [count for count, _, _ in axes]
        lanes = min(7, max(2, (counts[-1] - 1).bit_length()))
        last = {"shift": lanes} if self._items else {"threads": self._threads}
        span = _TURNS << lanes if self._items else _SPAN
        pieces = -(-counts[-1] // span)
        values: dict[str, int | Buffer] = {
            "source": source.buffer, "target": target.buffer,
            "source_first": source.first * parts, "target_first": target.first * parts,
            **dict(zip(_COUNTS, counts, strict=True)),
            **dict(zip(_FROM, (step for _, step, _ in axes), strict=True)),
            **dict(zip(_TO, (step for _, _, step in axes), strict=True)),
            "pieces": pieces, "span": span, **last,
        }  # fmt: skip
        return self._primitive.call("fl_move", values, prod(counts[:-1]) * pieces << lanes, name)
