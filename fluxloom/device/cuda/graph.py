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
from functools import cache
from typing import Any

__all__ = ["PrioritisedGraph", "prioritised"]

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

