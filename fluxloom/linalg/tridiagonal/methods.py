"""The methods by name: on devices that run kernels of work items, and on processors, where functions are plain C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fluxloom.dsl.tile_owners import cache_bytes
from fluxloom.linalg.tridiagonal.chunks import Chunks
from fluxloom.linalg.tridiagonal.form import Method
from fluxloom.linalg.tridiagonal.kernels_cyclic import CyclicReduction
from fluxloom.linalg.tridiagonal.kernels_thomas import Thomas
from fluxloom.linalg.tridiagonal.partition import Partition
from fluxloom.linalg.tridiagonal.plain_cyclic import PlainCyclicReduction
from fluxloom.linalg.tridiagonal.plain_thomas import PlainThomas

__all__ = ["METHODS_ITEMS", "METHODS_PLAIN"]

METHODS_ITEMS: Mapping[str, Callable[[int], Method]] = MappingProxyType(
    {
        "thomas": lambda switch: Thomas(),
        "partition": lambda switch: Partition(),
        "cr": lambda switch: CyclicReduction("cr"),
        "pcr": lambda switch: CyclicReduction("pcr"),
        "cr_pcr": lambda switch: CyclicReduction("cr_pcr", switch),
        "chunks": lambda switch: Chunks(),
    }
)
"""Each takes ``switch``, which only ``cr_pcr`` looks at (0: chosen)."""

METHODS_PLAIN: Mapping[str, Callable[[int, int], Method]] = MappingProxyType(
    {
        "thomas": lambda switch, threads: PlainThomas(threads, cache_bytes(2) * 5 // 8),
        "cr": lambda switch, threads: PlainCyclicReduction("cr", 0, threads),
        "pcr": lambda switch, threads: PlainCyclicReduction("pcr", 0, threads),
        "cr_pcr": lambda switch, threads: PlainCyclicReduction("cr_pcr", switch, threads),
    }
)
"""Each takes ``switch``, which only ``cr_pcr`` looks at (0: chosen), and the threads."""
