"""Arrays that share memory with buffers: where their values are, and how they are handed to other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["View", "capsule", "dense", "gapless", "steps"]


@dataclass(frozen=True)
class View:
    """Where the values of an array are in a buffer.

    Attributes
    ----------
    shape, dtype
        Of the array.
    strides, offset
        Bytes from one value to the next along each axis, and from the start of the buffer to the first value.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dense(self) -> bool:
        """Whether the values lie one after the other, the last axis fastest."""
        return dense(self.shape, self.strides, self.dtype.itemsize)


def steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many values lie between neighbours along each axis of a dense array."""
    out, step = [], 1
    for length in reversed(shape):
        out.append(step)
        step *= length
    return tuple(reversed(out))


def dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether an array is dense: values one after the other, the last axis fastest."""
    wanted = steps(shape)
    return 0 in shape or all(
        length == 1 or stride == itemsize * step for length, stride, step in zip(shape, strides, wanted, strict=True)
    )


def gapless(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the values of an array fill its memory, in whatever order of the axes."""
    axes = sorted(range(len(shape)), key=lambda k: (-strides[k], shape[k]))
    return dense([shape[k] for k in axes], [strides[k] for k in axes], itemsize)


def capsule(array: Any, stream: Any, **wanted: Any) -> Any:
    """Return an array's DLPack capsule.

    Parameters
    ----------
    array
        Of NumPy or CuPy; versions that know DLPack 0 only are understood.
    stream
        Of the consumer.
    **wanted
        ``max_version``, ``dl_device`` and ``copy`` of ``__dlpack__``; None is as if it were not there.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        return array.__dlpack__(stream=stream, **given)
    except TypeError:
        if set(given) != {"max_version"}:
            raise
        return array.__dlpack__(stream=stream)  # the version is a wish
