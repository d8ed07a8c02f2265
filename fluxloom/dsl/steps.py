"""Steps of a chain that are not loops."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.dats import Global
from fluxloom.dsl.incoming import incoming
from fluxloom.dsl.runtime import Runtime

__all__ = ["Reset"]


class Reset:
    """Sets a global to a value: in a chain, a reduction starts anew at every call."""

    def __init__(self, target: Global, value: float = 0.0) -> None:
        incoming(value, target.scalar, f"global {target.name!r}")
        self.target, self.value = target, value
        self.context: Runtime = target.context

    def __call__(self) -> None:
        """Set the value now."""
        self.target.value = np.full(self.target.shape, self.value)

    def block(self, value: float | None = None) -> npt.NDArray[np.int64]:
        """Return the argument block of the native form: address, components, bytes of one, its bits.

        ``value`` is another one than that of the reset.
        """
        words = np.zeros(4, dtype=np.int64)
        size = self.target.scalar.size
        words[:3] = self.target.buffer.address, self.target.dim, size
        bits = np.array([self.value if value is None else value], dtype=self.target.scalar.numpy).tobytes()
        words[3:].view(np.uint8)[:size] = np.frombuffer(bits, dtype=np.uint8)
        return words
