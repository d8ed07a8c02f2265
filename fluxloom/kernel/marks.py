"""What a kernel may meet among the names it uses: helpers, which it calls, and other kernels, which it cannot."""

from __future__ import annotations

from typing import Any

__all__ = ["Helper", "KernelMarker"]


class Helper:
    """Base of `fluxloom.kernel.frontend.Func`: something a kernel may call and that is inlined.

    Attributes
    ----------
    source
        Its `fluxloom.kernel.source.FunctionSource`.
    """

    source: Any


class KernelMarker:
    """Base of `fluxloom.kernel.frontend.Kernel`, so that calling a kernel from a kernel is recognised."""
