"""Work on sources that nest deeper than Python's functions may: long sums, chains of `elif`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from fluxloom.core.errors import KernelError

__all__ = ["deeply"]

T = TypeVar("T")

_FRAMES = 300_000
_STACK = 512 << 20
"""Bytes of address space: only what is used is taken from memory."""


def deeply(work: Callable[[], T], name: str) -> T:
    """Return what ``work`` returns; where it recurses too deep, do it again where there is room.

    Parameters
    ----------
    work
        Does the same when it is done again.
    name
        The kernel or helper, for the message.

    Raises
    ------
    KernelError
        When even that is not enough.
    """
    try:
        return work()
    except RecursionError:
        pass
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # passed on to the thread that waits
            raised.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    try:
        sys.setrecursionlimit(_FRAMES)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if raised and isinstance(raised[0], RecursionError):
        raise KernelError(f"{name!r}: expressions are nested too deep", hint="keep parts of them in locals")
    if raised:
        raise raised[0]
    return found[0]
