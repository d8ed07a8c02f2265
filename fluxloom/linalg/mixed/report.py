"""What a search for the rows of each device found, and whether it pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fluxloom.dsl.run.hybrid import Attempt, Balanced

__all__ = ["KernelBalance"]


@dataclass(frozen=True)
class KernelBalance:
    """The split of one kind of kernel among devices.

    Attributes
    ----------
    kind
        ``"spmv"``, ``"axpy"``, ``"dot"`` or ``"cg"``.
    names
        The devices.
    found
        The search: seconds of a call of the kernel, with each device alone and with every split that was tried.
    again
        Seconds of the fastest device alone and of the best split, measured once more, in turn: the least of many
        measurements is too good to be compared with a single one.
    """

    kind: str
    names: tuple[str, ...]
    found: Balanced
    again: tuple[float, float]

    @property
    def alone(self) -> tuple[float, ...]:
        """Seconds of each device alone, with all of the rows."""
        return self.found.alone

    @property
    def fastest(self) -> int:
        """Number of the device that is the fastest alone."""
        return self.alone.index(min(self.alone))

    @property
    def pays(self) -> bool:
        """Whether the devices together are faster than the fastest of them alone."""
        return self.again[1] < self.again[0]

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares to take: those of the best split, or everything for the fastest device where no split pays."""
        return self.found.shares if self.pays else self._only(self.fastest)

    @property
    def seconds(self) -> float:
        """Seconds of a call with `shares`."""
        return min(self.again)

    @property
    def speed_up(self) -> float:
        """``t_1 / t``, seconds of the fastest device alone over those of the best split.

        Below 1 where it does not pay.
        """
        return self.again[0] / self.again[1]

    @property
    def ideal(self) -> float:
        """The speed-up if devices kept the rates that they have alone: ``1 + sum of the other rates / the fastest``."""
        return sum(min(self.alone) / seconds for seconds in self.alone)

    @property
    def trace(self) -> tuple[Attempt, ...]:
        """All that was measured, in order: each device alone, then the splits."""
        ends = [Attempt(self._only(k), seconds, self._only(k, seconds)) for k, seconds in enumerate(self.alone)]
        return (*ends, *self.found.history)

    def _only(self, number: int, value: float = 1.0) -> tuple[float, ...]:
        return tuple(value if k == number else 0.0 for k in range(len(self.names)))

    def lines(self) -> Iterator[str]:
        """Yield the trace and the answer as text."""
        for attempt in self.trace:
            what = attempt.error or f"{1e3 * attempt.seconds:.4g} ms, busy {_numbers(1e3 * b for b in attempt.busy)} ms"
            yield f"  {self.kind} {_numbers(attempt.shares)}: {what}"
        best = f"best split {_numbers(self.found.shares)}: {self.speed_up:.3f} x {self.names[self.fastest]} alone"
        yield f"{self.kind}: {best} (ideal {self.ideal:.3f}); {'it pays' if self.pays else 'it does not pay'}"

    def record(self) -> dict[str, Any]:
        """Return the numbers, for a file."""
        return {
            "kernel": self.kind, "devices": list(self.names), "shares": list(self.shares), "pays": self.pays,
            "speed_up": self.speed_up, "ideal": self.ideal, "seconds": self.seconds,
            "split_shares": list(self.found.shares), "split_seconds": self.again[1],
            "fastest_seconds": self.again[0],
            "alone_seconds": list(self.alone), "of_sum_of_rates": self.found.efficiency,
            "trace": [
                {"shares": list(a.shares), "seconds": None if a.error else a.seconds, "busy": list(a.busy),
                 "error": a.error}
                for a in self.trace
            ],
        }  # fmt: skip


def _numbers(values: Iterator[float] | Sequence[float]) -> str:
    return " : ".join(f"{value:.4g}" for value in values)
