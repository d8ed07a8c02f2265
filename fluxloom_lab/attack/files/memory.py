"""The bound of the memory of a trial."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

__all__ = ["bound_memory"]

_ARENA_MAX = -8


def bound_memory(extra: int) -> None:
    """Let this process have so many bytes of address space beyond what it has; more is a `MemoryError`.

    Threads share one arena then: each of their own takes 64 MiB of addresses.
    """
    ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
