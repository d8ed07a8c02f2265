"""The roofline: how fast memory and arithmetic let a loop be.

Memory has two ceilings here, both measured: that of a copy, which reads as much as it writes, and that of a sum, which
only reads. Neither follows from the other. Where few cores read, each waits for a limited number of lines, and a sum
moves fewer bytes a second than a copy whose stores pass the caches by; where the memory itself is the limit, a sum
moves more, as nothing turns from reading to writing.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52(4), 2009. The ceiling of reading is one of those that this paper
puts below that of the peak bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fluxloom.core.errors import FluxloomError

__all__ = ["Roofline"]


@dataclass(frozen=True)
class Roofline:
    """The ceilings of a machine; a gigabyte is 1e9 bytes.

    Attributes
    ----------
    copy_gbs
        Bandwidth of a large copy on the same device, measured in the same run (GB/s, read plus write).
    gflops
        Peak arithmetic rate (1e9 operations a second); infinite: only memory counts.
    read_gbs
        Bandwidth of a large sum, which only reads; None: not measured, taken to be that of the copy.
    update_gbs
        Bandwidth of an update in place (read plus write), which within caches is more than that of a copy: no line has
        to be fetched only to be written; None: not measured.

    Raises
    ------
    FluxloomError
        If a ceiling is not positive.
    """

    copy_gbs: float
    gflops: float = inf
    read_gbs: float | None = None
    update_gbs: float | None = None

    def __post_init__(self) -> None:
        known = [value for value in (self.read_gbs, self.update_gbs) if value is not None]
        if not all(value > 0 for value in (self.copy_gbs, self.gflops, *known)):
            raise FluxloomError(f"{self}: all ceilings must be positive; measure the bandwidths first")

    @property
    def moving_gbs(self) -> float:
        """The ceiling of reading and writing alike: that of the copy or of the update, whichever is faster."""
        return max(self.copy_gbs, self.update_gbs or 0.0)

    @property
    def reading_gbs(self) -> float:
        """The ceiling of reading: that of the sum, and not less than a copy or an update reads, half of its bytes."""
        return self.moving_gbs if self.read_gbs is None else max(self.read_gbs, 0.5 * self.moving_gbs)

    def seconds(self, nbytes: float, flops: float = 0.0, *, read: float = 0.0) -> float:
        r"""Return the least time of a loop.

        With ``R`` bytes read and ``W`` written, the bandwidths ``c`` of a copy or an update, whichever is faster, and
        ``r`` of a sum, and the rate ``F``,

        .. math:: T = \max\left(\frac{R}{r}, \; \frac{2 \min(R, W) + \max(W - R, 0)}{c}
                  + \frac{\max(R - W, 0)}{\max(r, c)}, \; \frac{flops}{F}\right)

        A copy and a sum take what was measured. A loop that reads more than it writes is a copy and a sum: one after
        the other where both want the same memory (``r >= c``); where different things hold them up, the cores what is
        read and the memory all together (``r < c``), only what each ceiling alone demands is certain. Of a loop that
        writes more than it reads only the bytes are known, and one that reads nothing can be faster than that.

        Parameters
        ----------
        nbytes
            Bytes read and written, ``R + W``.
        flops
            Operations.
        read
            Those that are read, ``R``; 0 where nobody has counted: then ``nbytes / c`` is all that there is.

        Raises
        ------
        FluxloomError
            If more is read than is read and written.
        """
        if read > nbytes:
            raise FluxloomError(f"{read:.6g} bytes read of {nbytes:.6g} read and written; count both anew")
        reading, only_read = self.reading_gbs, max(0.0, 2.0 * read - nbytes)
        memory = (nbytes - only_read) / self.moving_gbs + only_read / max(reading, self.moving_gbs)
        return max(read / (1e9 * reading), memory / 1e9, flops / (1e9 * self.gflops))

    def percent_of_copy(self, nbytes: float, seconds: float) -> float:
        """Return the bandwidth of ``nbytes`` useful bytes in ``seconds`` as a percentage of the copy's."""
        return 100.0 * nbytes / seconds / (1e9 * self.copy_gbs) if seconds > 0 else 0.0

    def percent_of_roof(self, nbytes: float, flops: float, seconds: float, *, read: float = 0.0) -> float:
        """Return the least time as a percentage of the measured one (100: nothing left to gain)."""
        return 100.0 * self.seconds(nbytes, flops, read=read) / seconds if seconds > 0 else 0.0

    @property
    def balance(self) -> float:
        """Operations a byte at which the ceilings of copy and arithmetic meet: below it a loop is bound by memory."""
        return self.gflops / self.copy_gbs
