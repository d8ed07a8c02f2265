"""Captured graphs with kernels of two streams: those of the stream of high priority go first.

A CUDA graph runs with the priority of the stream it is launched on, unless it was instantiated to respect that of its
kernels: then a small kernel beside a large one need not wait until all groups of the large one have begun. CuPy has no
word for that, so this asks the driver.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import weakref
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluxloom.device.cuda import CudaDevice

__all__ = ["Contest", "PrioritisedGraph", "prioritised"]

_ROUNDS = 4
"""Runs of a graph and of its kernels one by one that are timed."""

_USE_NODE_PRIORITY = 8
"""CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, of CUDA 11.7."""


class PrioritisedGraph:
    """A graph that respects the priorities of the streams its kernels were captured on.

    Parameters
    ----------
    driver
        CUDA's driver.
    graph
        What CuPy has captured; kept alive.

    Raises
    ------
    OSError
        With the number of the driver's error.
    """

    def __init__(self, driver: ctypes.CDLL, graph: Any) -> None:
        self._driver, self._graph = driver, graph
        found = ctypes.c_void_p()
        _check(driver.cuGraphInstantiateWithFlags(
            ctypes.byref(found), ctypes.c_void_p(graph.graph), ctypes.c_ulonglong(_USE_NODE_PRIORITY)
        ))  # fmt: skip
        self._whole = found
        weakref.finalize(self, driver.cuGraphExecDestroy, found)

    def launch(self, stream: Any) -> None:
        """Run the graph on a stream."""
        _check(self._driver.cuGraphLaunch(self._whole, ctypes.c_void_p(stream.ptr)))


def prioritised(graph: Any) -> Any:
    """Return a captured graph as one that respects priorities; where the driver cannot, with a warning, as it is."""
    try:
        return PrioritisedGraph(_driver(), graph)
    except (OSError, AttributeError) as error:
        logging.getLogger("fluxloom").warning(
            "messages will not overtake the kernels beside them: the driver makes no graph with priorities: %s", error
        )
        return graph


def _check(status: int) -> None:
    if status:
        raise OSError(f"CUDA's driver says {status}")


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


class Contest:
    """Runs a graph, or its kernels one by one where that is faster: decided by timing both in turn.

    Kernels that run beside each other wait for each other a few microseconds longer in a graph than on two streams;
    where the kernels are large, the host has the time to ask for each of them.

    Parameters
    ----------
    device
        The GPU.
    graph
        With a method ``launch(stream)``.
    one_by_one
        Asks for the same kernels.
    """

    def __init__(self, device: CudaDevice, graph: Any, one_by_one: Callable[[], None]) -> None:
        self._device, self._stream = device, device.stream
        self._ways = (lambda: graph.launch(self._stream), one_by_one)
        self._marks: list[tuple[Any, Any]] = []
        self.best = -1
        """0: the graph, 1: one by one, -1: not yet decided."""

    def launch(self, _stream: Any) -> None:
        """Run once."""
        if self.best < 0 and len(self._marks) == 2 * _ROUNDS and self._marks[-1][1].done:
            self._decide()
        if self.best >= 0 or len(self._marks) == 2 * _ROUNDS:
            self._ways[max(0, self.best)]()
            return
        begin = self._device.mark()
        self._ways[len(self._marks) % 2]()
        self._marks.append((begin, self._device.mark()))

    def _decide(self) -> None:
        elapsed = self._device.cupy.cuda.get_elapsed_time
        times = [float(elapsed(begin, end)) for begin, end in self._marks]
        graph, alone = min(times[2::2]), min(times[3::2])  # the first round finds the queue empty
        self.best = int(alone < graph)
        self._device.events += [event for pair in self._marks for event in pair]
        self._marks = []
