"""Who may step in before loops run: checkpoints, lazy evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fluxloom.dsl.chain import Chain
    from fluxloom.dsl.dats import Dat, Global
    from fluxloom.dsl.loop import Loop

__all__ = ["Observer"]


class Observer(ABC):
    """Sees every loop and every chain of a context before it runs (``context.observer``).

    Inside `loop` and `chain` the observer sets ``context.observer`` aside for what it runs itself.
    """

    @abstractmethod
    def loop(self, loop: Loop) -> bool:
        """Return whether the call has been taken care of: run, put off, or skipped."""

    @abstractmethod
    def chain(self, chain: Chain) -> bool:
        """Return whether the call has been taken care of."""

    def seen(self, data: Dat | Global) -> None:  # noqa: B027 - most observers do not mind
        """The host looks at a dat or a global."""

    def settle(self) -> None:  # noqa: B027 - most observers put nothing off
        """Run what was put off: the host wants a result."""
