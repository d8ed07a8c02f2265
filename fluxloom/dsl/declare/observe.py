"""Who may step in before loops run: checkpoints, lazy evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Observer"]


class Observer(ABC):
    """Sees every loop and every chain of a context before it runs (``context.observer``).

    It is told of a `Loop`, a `Chain`, a `Dat` or a `Global`, all of which are made in a context.
    Inside `loop` and `chain` the observer sets ``context.observer`` aside for what it runs itself.
    """

    @abstractmethod
    def loop(self, loop: Any) -> bool:
        """Return whether the call has been taken care of: run, put off, or skipped."""

    @abstractmethod
    def chain(self, chain: Any) -> bool:
        """Return whether the call has been taken care of."""

    def seen(self, data: Any) -> None:  # noqa: B027 - most observers do not mind
        """The host looks at a dat or a global."""

    def settle(self) -> None:  # noqa: B027 - most observers put nothing off
        """Run what was put off: the host wants a result."""
