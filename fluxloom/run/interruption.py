"""Signals that end a run: between two steps, so that the fields are whole; before the first one at once."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from fluxloom.comm.base import Comm

__all__ = ["Interruption", "leaving_by_signal"]

_SAME_SIGNAL = 1.0
"""Seconds in which signals count as one."""

_GRACE = 20.0
"""Seconds that an interrupted step may still take; batch systems kill a job not much later."""


@contextmanager
def leaving_by_signal() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP leave the block as an exception with their exit status, so that it tidies up."""

    def leave(number: int, _frame: object) -> NoReturn:
        """Leave the block."""
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Interruption:
    """Whether somebody wants the run to end: a signal is remembered, and all ranks stop behind the same iteration.

    Stopping at once would leave half an iteration in the fields. A second signal does, if it comes later than what a
    launcher makes of the first, and so does an iteration that does not end.
    """

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._since = 0.0
        self.signal = 0
        """Number of the signal, 0 where there was none on this rank."""
        self._timer = threading.Timer(_GRACE, _thread.interrupt_main)
        self._timer.daemon = True
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if isinstance(error, KeyboardInterrupt) and self.signal not in (0, signal.SIGINT):
            raise SystemExit(128 + self.signal) from None

    def _note(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._since and now - self._since > _SAME_SIGNAL:
            raise KeyboardInterrupt
        if not self._since:
            self._since, self.signal = now, number
            self._timer.start()

    def agreed(self) -> int:
        """Return the number of the signal that a rank got, or 0; the same on every rank, which all have to ask."""
        if self._comm.size == 1:
            return self.signal
        return int(self._comm.reduce(np.array([self.signal]), "max")[0])
