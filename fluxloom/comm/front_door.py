"""A rank that ends with status 0 in the middle of a run must not let the whole run look as if it had ended well.

Launchers pass on the status of the rank that goes first and kill the others: nothing they do can change it any more.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from fluxloom.comm.launchers import STATUS_FILE

__all__ = ["BEGUN", "mark", "refuse_early_exit", "unmark"]

BEGUN = "begun"
"""What stands in the file of `STATUS_FILE` from the first communicator until all ranks have come to their end."""


def mark() -> None:
    """Tell the program that started the ranks that they have begun. One rank does."""
    if name := os.environ.get(STATUS_FILE):
        Path(name).write_text(BEGUN, encoding="ascii")


def unmark() -> None:
    """Tell it that all ranks have come to their end."""
    if name := os.environ.get(STATUS_FILE):
        Path(name).unlink(missing_ok=True)


def refuse_early_exit(may: Callable[[], bool], abort: Callable[[str], NoReturn]) -> None:
    """Let ``os._exit(0)`` end all ranks with a status other than 0, in this process and not in copies of it.

    Parameters
    ----------
    may
        Whether this rank may go.
    abort
        Ends all ranks, and says why.
    """
    leave, process = os._exit, os.getpid()
    if hasattr(leave, "__wrapped__"):
        return

    @functools.wraps(leave)
    def leave_or_abort(status: int) -> NoReturn:
        if status == 0 and os.getpid() == process and not may():
            abort("os._exit(0) in the middle of the run: all ranks are ended; leave by the end of the program, an "
                  "exception or sys.exit")  # fmt: skip
        leave(status)

    os._exit = leave_or_abort
