"""Values put aside while something is tried with the data."""

from __future__ import annotations

from collections.abc import Iterable

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.runtime import unique

__all__ = ["Snapshot"]


class Snapshot:
    """Values of dats and globals, byte by byte, and the buffers they are in."""

    def __init__(self, items: Iterable[Dat | Global]) -> None:
        self._saved = [(item, item.buffer, item.buffer.host().copy()) for item in unique(items)]

    def restore(self) -> None:
        """Put the values back; the version counts on, because the values have changed meanwhile."""
        for item, _, values in self._saved:
            item.buffer.host(write=True)[:] = values
            item.version += 1

    def settle(self) -> None:
        """Put the buffers back too (a fused chain exchanges them), then the values."""
        moved = [(item, buffer) for item, buffer, _ in self._saved if item.buffer is not buffer]
        for item, buffer in moved:
            item.buffer = buffer
            item.context.epoch += 1
        self.restore()
