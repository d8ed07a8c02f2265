"""Huge pages for the memory of OpenCL devices that are CPUs: their drivers do not ask for them, NumPy does."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

__all__ = ["advise", "advise_buffer"]

_PAGE = 2 << 20
_SMALLEST = 2 * _PAGE


def advise(address: int, nbytes: int) -> bool:
    """Ask the system for huge pages, where whole ones lie inside a range; returns whether it agreed."""
    start = -(-address // _PAGE) * _PAGE
    length = (address + nbytes) // _PAGE * _PAGE - start
    wish = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
    if wish is None or length <= 0:
        return False
    try:
        function = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return False
    return function(ctypes.c_void_p(start), ctypes.c_size_t(length), ctypes.c_int(wish)) == 0


def advise_buffer(cl: Any, queue: Any, memory: Any) -> bool:
    """Ask for huge pages under a buffer that nothing has been written to; returns whether the system agreed.

    Drivers of CPUs map a buffer to where it lies. Where one does not, only its copy gets larger pages.
    """
    if memory.size < _SMALLEST:
        return False
    try:
        array, _ = cl.enqueue_map_buffer(queue, memory, cl.map_flags.READ, 0, (memory.size,), "uint8")
    except cl.Error:
        return False
    try:
        return advise(array.ctypes.data, memory.size)
    finally:
        array.base.release(queue)
