"""Work that is done part by part, so that a part stays in the cache of a core, by threads of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from fluxloom.device.base import Call, Device, Enqueued
from fluxloom.device.buffer import View
from fluxloom.dsl.declare.arrays import DeviceArray

__all__ = ["Blocks", "cuts", "helpers", "part"]

_CACHE = 1 << 19
"""Bytes of a part: they and what a transform makes of them stay in the second-level cache of a core."""

_LEAST = 8
"""Neighbouring values along an axis: a cache line."""


def part(array: DeviceArray, axis: int, begin: int, end: int) -> DeviceArray:
    """Return a part of an array along an axis, over the same memory."""
    view = array.view
    shape = (*view.shape[:axis], end - begin, *view.shape[axis + 1 :])
    cut = View(shape, view.dtype, view.strides, view.offset + begin * view.strides[axis])
    return DeviceArray(array.device, array.buffer, cut)


def cuts(array: DeviceArray, axis: int, threads: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of parts along an axis that fit into a cache, at least two for each of several threads."""
    length = array.shape[axis]
    plane = max(1, array.dtype.itemsize)
    for k, n in enumerate(array.shape):
        plane *= n if k != axis else 1
    least = _LEAST if abs(array.strides[axis]) == 1 else 1
    width = max(least, min(_CACHE // plane, -(-length // (2 * threads if threads > 1 else 1))))
    for begin in range(0, length, width):
        yield begin, min(length, begin + width)


class Blocks:
    """Parts of work, dealt to several threads: the part of number ``k`` to the thread ``k % threads``.

    Parameters
    ----------
    device
        Of host memory.
    parts
        What is done for each part, in order. Parts of different threads must not share working memory.
    threads
        The one that calls included.
    pool
        Of the other threads, if there is one already.
    """

    def __init__(
        self, device: Device, parts: Sequence[Sequence[Call | Enqueued]], threads: int,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:  # fmt: skip
        dealt = [[item for part in parts[k::threads] for item in part] for k in range(min(threads, len(parts)))]
        self._own, *self._others = (device.sequencer(items) for items in dealt or [[]])
        self._pool = pool if pool is not None or not self._others else helpers(threads)

    def __call__(self) -> None:
        """Do all parts; an error in one of them is raised here."""
        waiting = [] if self._pool is None else [self._pool.submit(run) for run in self._others]
        self._own()
        for one in waiting:
            one.result()


def helpers(threads: int) -> ThreadPoolExecutor | None:
    """Return threads beside the one that calls; None where there are none."""
    return ThreadPoolExecutor(threads - 1, "fluxloom-poisson") if threads > 1 else None
