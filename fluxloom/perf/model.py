"""The roofline: how fast memory and arithmetic let a loop be.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fluxloom.core.errors import FluxloomError

__all__ = ["Roofline"]


@dataclass(frozen=True)
class Roofline:
    """The two ceilings of a machine; a gigabyte is 1e9 bytes.

    Attributes
    ----------
    copy_gbs
        Bandwidth of a large copy on the same device, measured in the same run (GB/s, read plus write).
    gflops
        Peak arithmetic rate (1e9 operations a second); infinite: only memory counts.

    Raises
    ------
    FluxloomError
        If a ceiling is not positive.
    """

    copy_gbs: float
    gflops: float = inf

    def __post_init__(self) -> None:
        if not self.copy_gbs > 0 or not self.gflops > 0:
            raise FluxloomError(f"{self}: both ceilings must be positive; measure the copy bandwidth first")

    def seconds(self, nbytes: float, flops: float = 0.0) -> float:
        """Return the least time of a loop: ``max(bytes / bandwidth, operations / rate)``."""
        return max(nbytes / (1e9 * self.copy_gbs), flops / (1e9 * self.gflops))

    def percent_of_copy(self, nbytes: float, seconds: float) -> float:
        """Return the bandwidth of ``nbytes`` useful bytes in ``seconds`` as a percentage of the copy's."""
        return 100.0 * nbytes / seconds / (1e9 * self.copy_gbs) if seconds > 0 else 0.0

    def percent_of_roof(self, nbytes: float, flops: float, seconds: float) -> float:
        """Return the least time as a percentage of the measured one (100: nothing left to gain)."""
        return 100.0 * self.seconds(nbytes, flops) / seconds if seconds > 0 else 0.0

    @property
    def balance(self) -> float:
        """Operations a byte at which both ceilings meet: below it a loop is bound by memory."""
        return self.gflops / self.copy_gbs
