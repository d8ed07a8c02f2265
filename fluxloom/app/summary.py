"""What the loops of a run did, as rows for tables and records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fluxloom.dsl.report import LoopReport

__all__ = ["HEADINGS", "LEFT", "LoopRow", "difference", "loop_rows", "overall"]


@dataclass(frozen=True)
class LoopRow:
    """One loop or fused group.

    Attributes
    ----------
    name, calls, seconds
        What ran, how often, how long in all.
    useful_gbs
        Useful bytes over time; None where no time is kept.
    percent_of_copy
        Of the copy bandwidth measured in the same run.
    strategy, colours, lanes, block, vectorised, layout
        How it ran, and the layouts of its values.
    mean_seconds
        On several ranks, the time of a rank on average; ``seconds`` is that of the slowest, and bytes and copy
        bandwidth are those of all. None on a rank alone.
    """

    name: str
    calls: int
    seconds: float
    useful_gbs: float | None
    percent_of_copy: float | None
    strategy: str
    colours: int
    lanes: int
    block: int
    vectorised: bool | None
    layout: str = ""
    mean_seconds: float | None = None

    @property
    def imbalance(self) -> float | None:
        """By how much the slowest rank is over the mean; None on a rank alone and where no time is kept."""
        return self.seconds / self.mean_seconds - 1.0 if self.mean_seconds else None

    @property
    def milliseconds(self) -> float | None:
        """Time of a call."""
        return 1e3 * self.seconds / self.calls if self.calls and self.seconds else None

    def record(self) -> dict[str, Any]:
        """Return the row as ``bench --json`` writes it."""
        mean = self.mean_seconds
        ranks = {} if mean is None else {"mean_seconds": mean, "imbalance": self.imbalance}
        return {
            "name": self.name,
            "calls": self.calls,
            "seconds": self.seconds,
            "useful_gbs": self.useful_gbs,
            "percent_of_copy": self.percent_of_copy,
            "strategy": self.strategy,
            "block": self.block,
            "layout": self.layout,
            **ranks,
        }

    def cells(self, *, simd: bool = True) -> list[str]:
        """Return the row as texts of a table.

        Parameters
        ----------
        simd
            Whether loops run in vector packs; otherwise in groups of work items, whose size and layouts are shown.
        """
        packs = {True: str(self.lanes), False: "no", None: f"{self.lanes}?"}[self.vectorised] if simd else "-"
        return [
            self.name.replace("+", " + "),
            f"{self.calls:,}",
            _number(self.seconds or None, 3),
            _number(self.milliseconds, 4),
            _number(self.useful_gbs, 1),
            _number(self.percent_of_copy, 0),
            self.strategy,
            "-" if simd else str(self.block or "-"),
            "-" if simd else self.layout or "-",
            str(self.colours) if self.colours else "-",
            packs,
            _number(self.mean_seconds or None, 3),
            "-" if self.imbalance is None else f"{100 * self.imbalance:.0f}",
        ]


HEADINGS = ("loop", "calls", "s", "ms/call", "GB/s", "% copy", "strategy", "block", "layout", "colours", "SIMD",
            "mean s", "uneven %")  # fmt: skip
"""Headings of `LoopRow.cells`; SIMD: elements a vector pack, ``no`` where the compiler did not vectorise.

On several ranks: the time of a rank on average, and by how much the slowest is over it.
"""

LEFT = (0, 6, 8)
"""Columns that are aligned left."""


def loop_rows(reports: Sequence[LoopReport], copy_gbs: float = 0.0) -> list[LoopRow]:
    """Return a row per report; percentages need the measured copy bandwidth."""
    rows = []
    for item in reports:
        timed = item.calls > 0 and item.seconds > 0
        rate = item.useful_bytes * item.calls / item.seconds / 1e9 if timed else None
        share = 100.0 * rate / copy_gbs if rate is not None and copy_gbs else None
        rows.append(
            LoopRow(
                item.name, item.calls, item.seconds, rate, share,
                item.strategy, item.colours, item.lanes, item.block, item.vectorised, item.layout,
            )
        )
    return rows


def overall(reports: Sequence[LoopReport]) -> tuple[float, float]:
    """Return useful bytes and seconds of all loops together."""
    return float(sum(r.useful_bytes * r.calls for r in reports)), float(sum(r.seconds for r in reports))


def difference(after: Sequence[LoopReport], before: Sequence[LoopReport]) -> list[LoopReport]:
    """Return what the loops did between two readings of their counters."""
    old = {(item.name, number): item for number, item in enumerate(before)}
    found = []
    for number, item in enumerate(after):
        was = old.get((item.name, number))
        calls, seconds = (was.calls, was.seconds) if was is not None else (0, 0.0)
        found.append(replace(item, calls=item.calls - calls, seconds=item.seconds - seconds))
    return found


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
