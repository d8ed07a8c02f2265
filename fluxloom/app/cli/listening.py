"""What goes on before the first step, on standard error: a line whenever nothing has been said for two seconds.

::

    compiling: residual, number 3 (4 s)
    levels of multigrid: level 3, 41,200 rows (2 s)
    working (14 s)

The last stands where the stage has no name. Stages name themselves with `fluxloom.core.activity.activity`.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from fluxloom.app.cli.console import messages
from fluxloom.core.activity import Work, listening
from fluxloom.core.errors import FluxloomError

__all__ = ["Listening", "say"]

EVERY = 1.8
"""Seconds without a line after which there is one: with what it takes to print it, silence ends within two seconds."""


_LONGEST = 1_000_000


def say(line: str) -> None:
    """Print a line on standard error."""
    messages().print(line, soft_wrap=True, markup=False)


def _asked() -> float:
    """Return the seconds of silence that the environment allows."""
    text = os.environ.get("FLUXLOOM_SILENCE", "")
    try:
        seconds = float(text) if text else EVERY
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _LONGEST:
        raise FluxloomError(f"FLUXLOOM_SILENCE={text!r}: seconds from 0 (never a line) to {_LONGEST:,} are wanted")
    return seconds


class Listening(AbstractContextManager["Listening"]):
    """Says what is going on, from a thread of its own, as long as it is entered.

    It may be entered again, one use after the other.

    Parameters
    ----------
    tell
        Prints a line; None: nothing is said, as on every rank but the first.
    every
        Seconds without a line after which there is one; by default those of the variable ``FLUXLOOM_SILENCE`` of the
        environment, else 1.8. 0: nothing is said of what goes on.
    clock
        Seconds that pass.

    Raises
    ------
    FluxloomError
        If the variable is not a number of seconds.
    """

    def __init__(
        self, tell: Callable[[str], object] | None = say, *, every: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._tell, self._clock = tell, clock
        self._every = _asked() if every is None else every
        self._lock = threading.Lock()
        self._works: list[tuple[Work, int, float]] = []
        self._counts: Counter[str] = Counter()
        self._begin = self._last = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._heard: AbstractContextManager[None] | None = None

    def __enter__(self) -> Listening:
        if self._tell is not None and self._every:
            self._begin = self._last = self._clock()
            self._stop.clear()
            self._heard = listening(self)
            self._heard.__enter__()
            self._thread = threading.Thread(target=self._watch, name="fluxloom-listening", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Be silent from now on: the first step has been made, or something else tells how far it is."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._heard is not None:
            self._heard.__exit__(None, None, None)
            self._heard = None

    def tell(self, line: str) -> None:
        """Print a line of another kind, after which silence begins anew."""
        if self._tell is not None:
            self._last = self._clock()
            self._tell(line)

    def began(self, work: Work) -> None:
        """Hear that an activity begins."""
        with self._lock:
            self._counts[work.what] += 1
            self._works.append((work, self._counts[work.what], self._clock()))

    def ended(self, work: Work) -> None:
        """Hear that it has ended."""
        with self._lock:
            self._works = [item for item in self._works if item[0] is not work]

    def line(self) -> str:
        """Return what goes on now: the outermost activity and the innermost one, and since when."""
        with self._lock:
            works = self._works[:1] + self._works[1:][-1:]
        if not works:
            return f"working ({self._clock() - self._begin:.0f} s)"
        texts = [f"{work}, number {number}" if work.again else str(work) for work, number, _ in works]
        return f"{'; '.join(texts)} ({self._clock() - works[-1][2]:.0f} s)"

    def _watch(self) -> None:
        """Print a line whenever none has been printed for long enough, until the end."""
        while not self._stop.wait(max(self._last + self._every - self._clock(), 0.01)):
            if self._clock() - self._last >= self._every:
                try:
                    self.tell(self.line())
                except (OSError, ValueError):  # nobody reads standard error any more: the work goes on
                    return
