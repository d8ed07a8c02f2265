"""The memory bandwidth of a GPU, measured: copies in several ways, and triad.

Source: J. D. McCalpin, "Memory bandwidth and machine balance in current high performance computers",
IEEE TCCA Newsletter, December 1995 (the STREAM benchmark: copy and triad).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fluxloom.device.bandwidth import Bandwidth

__all__ = ["GpuBandwidthMeter", "array_bytes"]

_LARGEST = 1 << 30
_SMALLEST = 1 << 20
_BATCH = 10

Pass = Callable[[], None]


def array_bytes(free: int) -> int:
    """Return the bytes of one array: 1 GiB or an eighth of the free memory, a multiple of 1 KiB."""
    return max(_SMALLEST, min(_LARGEST, free // 8)) // 1024 * 1024


class GpuBandwidthMeter:
    """Passes over arrays in the memory of a device; `measure` may be called between other work.

    Parameters
    ----------
    plain
        Copies an array scalar by scalar.
    others
        Copies it in other ways.
    triad
        Sets an array to ``a + s b``.
    elapsed
        Returns the seconds that the device needs for what a function asks of it.
    nbytes
        Bytes of an array.
    """

    def __init__(
        self, plain: Pass, others: Mapping[str, Pass], triad: Pass, elapsed: Callable[[Pass], float], nbytes: int
    ) -> None:
        self._copies = {**others, "plain": plain}
        self._passes = {**self._copies, "triad": triad}
        self._elapsed = elapsed
        self.bytes = nbytes

    def measure(self, repeats: int = 5) -> Bandwidth:
        """Return the best of ``repeats`` batches of ten passes of each kind (one batch more warms up)."""
        best = dict.fromkeys(self._passes, float("inf"))
        for number in range(repeats + 1):
            for name, run in self._passes.items():
                seconds = self._elapsed(_batch(run)) / _BATCH
                best[name] = min(best[name], seconds if number else float("inf"))
        moved = 2e-9 * self.bytes
        return Bandwidth(
            copy_gbs=moved / min(best[name] for name in self._copies),
            triad_gbs=1.5 * moved / best["triad"],
            copy_plain_gbs=moved / best["plain"],
            threads=0,
            bytes=self.bytes,
        )


def _batch(run: Pass) -> Pass:
    """Return a function that asks for several passes: starting them then costs next to nothing."""

    def several() -> None:
        for _ in range(_BATCH):
            run()

    return several
