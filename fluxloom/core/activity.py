"""What is going on, told to who listens: the long stages before a first step, and how far each of them is.

Code that may take seconds says so::

    with activity("wall distance", total=len(pieces)) as work:
        for piece in pieces:
            ...
            work.step()

Nothing is stored while nobody listens. Who listens (`listening`) hears each activity begin and end, and reads from its
`Work` how far it is, at any time and from any thread. Activities may be nested.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol

__all__ = ["Listener", "Work", "activity", "listening"]


class Listener(Protocol):
    """Who hears of activities; both methods may be called from any thread."""

    def began(self, work: Work) -> None:
        """Hear that an activity begins."""
        ...

    def ended(self, work: Work) -> None:
        """Hear that it has ended, well or not."""
        ...


class Work(AbstractContextManager["Work"]):
    """One activity, while it goes on.

    Parameters
    ----------
    what
        In a few words, as in ``"compiling"``.
    detail
        Which one, as in ``"step"``; `at` may change it.
    total
        Steps of it, where that is known; else 0.
    again
        Whether it comes again and again, so that it is worth saying which time it is.
    listener
        Who hears of it, or None.
    """

    __slots__ = ("_listener", "_lock", "again", "detail", "done", "total", "what")

    def __init__(
        self, what: str, detail: str = "", total: int = 0, *, again: bool = False, listener: Listener | None = None
    ) -> None:
        self.what, self.detail, self.total, self.done, self.again = what, detail, total, 0, again
        self._listener = listener
        self._lock = threading.Lock()

    def __enter__(self) -> Work:
        if self._listener is not None:
            self._listener.began(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.ended(self)

    def step(self, count: int = 1) -> None:
        """Say that some steps have been done."""
        if self._listener is not None:
            with self._lock:
                self.done += count

    def at(self, detail: str) -> None:
        """Say what it is at."""
        if self._listener is not None:
            self.detail = detail

    def __str__(self) -> str:
        count = f"{self.done:,} of {self.total:,}" if self.total else f"{self.done:,}" if self.done else ""
        rest = ", ".join(text for text in (count, self.detail) if text)
        return f"{self.what}: {rest}" if rest else self.what


_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_UNHEARD = Work("")


def activity(what: str, detail: str = "", *, total: int = 0, again: bool = False) -> Work:
    """Return an activity, to be entered with ``with``; it costs next to nothing where nobody listens.

    Parameters
    ----------
    what
        In a few words.
    detail
        Which one.
    total
        Steps of it, where that is known.
    again
        Whether it comes again and again, so that it is worth saying which time it is.
    """
    listener = _LISTENER.get()
    return _UNHEARD if listener is None else Work(what, detail, total, again=again, listener=listener)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let somebody hear of the activities of this thread, and of what runs in a copy of its context, until the end."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
