"""The methods for devices that run kernels of work items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fluxloom.linalg.tridiagonal.chunks import Chunks
from fluxloom.linalg.tridiagonal.form import Method
from fluxloom.linalg.tridiagonal.kernels_cyclic import CyclicReduction
from fluxloom.linalg.tridiagonal.kernels_thomas import Thomas
from fluxloom.linalg.tridiagonal.partition import Partition

__all__ = ["METHODS_ITEMS"]

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
"""The methods by name; each takes ``switch``, which only ``cr_pcr`` looks at (0: chosen)."""
