"""How a run ends before its end: ranks that fail, and signals."""

from __future__ import annotations

import _thread
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import numpy as np

from fluxloom.comm.base import Comm
from fluxloom.core.errors import FluxloomError, OtherRankFailed

__all__ = ["APART", "Interruption", "all_or_none", "first_failure", "leaving_by_signal"]

Result = TypeVar("Result")

_PATIENCE = 30.0
"""Seconds in which ranks that compute have to come to a message, where they hear of the one that failed."""

APART = f"the other ranks did not leave what they do within {_PATIENCE:.0f} s: they are ended"
"""Note of an error that only this rank knows."""


def first_failure(comm: Comm, error: Exception, steps: int) -> tuple[Exception, int]:
    """Return what the lowest rank that failed has raised, and behind which step. Collective.

    Ranks that wait for the one that failed are woken; the communicator can be used again.

    Parameters
    ----------
    comm
        The ranks.
    error
        What was raised here: `OtherRankFailed` on those that were woken.
    steps
        Steps that were done before.

    Raises
    ------
    Exception
        The error itself, with the note `APART`, where the ranks do not come together.
    """
    if comm.size == 1:
        return error, steps
    word = None if isinstance(error, OtherRankFailed) else (_portable(error, comm.rank), steps)
    said = comm.rally(word, _PATIENCE)
    if said is None:
        error.add_note(APART)
        raise error
    return next((found for found in said if found is not None), (error, steps))


def all_or_none(comm: Comm, action: Callable[[], Result]) -> Result | None:
    """Return what a collective action returns; None on every rank if it fails on one of several. Collective."""
    if comm.size == 1:
        return action()
    try:
        found = action()
        comm.barrier()
    except Exception as error:
        if comm.rally(None, _PATIENCE) is None:
            error.add_note(APART)
            raise
        return None
    return found


def _portable(error: Exception, rank: int) -> Exception:
    """Return an error as other ranks can have it, with a note of where it comes from if it is a mistake of ours."""
    text = "".join(traceback.format_exception(error)).rstrip()
    try:
        found = pickle.loads(pickle.dumps(error))
    except Exception:
        ours = isinstance(error, FluxloomError)
        found = FluxloomError(str(error)) if ours else RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(found, FluxloomError):
        found.add_note(f"on rank {rank}:\n{text}")
    return found


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
