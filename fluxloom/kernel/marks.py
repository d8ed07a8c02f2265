"""What a kernel may meet among the names it uses: helpers, which it calls, and other kernels, which it cannot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["Helper", "KernelMarker"]


class Helper(ABC):
    """Base of `fluxloom.kernel.frontend.Formula`: something a kernel may call and that is inlined.

    Attributes
    ----------
    source
        Its `fluxloom.kernel.source.FunctionSource`.
    """

    source: Any

    @abstractmethod
    def meaning(self, real: Any) -> Callable[..., Any]:
        """Return the function that does what the helper means, see `fluxloom.kernel.meaning`."""


class KernelMarker:
    """Base of `fluxloom.kernel.frontend.Kernel`, so that calling a kernel from a kernel is recognised."""
