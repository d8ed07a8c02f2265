"""The methods for processors, where functions are plain C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fluxloom.dsl.tile_owners import cache_bytes
from fluxloom.linalg.tridiagonal.form import Method
from fluxloom.linalg.tridiagonal.plain_cyclic import PlainCyclicReduction
from fluxloom.linalg.tridiagonal.plain_thomas import PlainThomas

__all__ = ["METHODS_PLAIN"]

METHODS_PLAIN: Mapping[str, Callable[[int, int], Method]] = MappingProxyType(
    {
        "thomas": lambda switch, threads: PlainThomas(threads, cache_bytes(2) * 5 // 8),
        "cr": lambda switch, threads: PlainCyclicReduction("cr", 0, threads),
        "pcr": lambda switch, threads: PlainCyclicReduction("pcr", 0, threads),
        "cr_pcr": lambda switch, threads: PlainCyclicReduction("cr_pcr", switch, threads),
    }
)
"""The methods by name; each takes ``switch``, which only ``cr_pcr`` looks at (0: chosen), and the threads."""
