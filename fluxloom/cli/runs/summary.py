"""What a run says of its loops at its end: of one rank, and of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluxloom.comm.base import Comm
from fluxloom.dsl.ranks.halo_loops import ExchangeTime
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.report import LoopReport

__all__ = [
    "EXCHANGE_HEADINGS", "HEADINGS", "LEFT", "ExchangeRow", "LoopRow", "difference", "exchange_rows", "exchanges_of",
    "loop_rows", "overall", "rows_of_ranks", "spread",
]  # fmt: skip


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


def rows_of_ranks(comm: Comm, reports: Sequence[LoopReport], copy_gbs: float) -> list[LoopRow]:
    """Return a row a loop: on several ranks the time of the slowest, the mean, and the bytes of all. Collective.

    Where some ranks keep no times of loops, the others' stand for themselves, without a share of the bandwidth.

    Parameters
    ----------
    comm
        The ranks.
    reports
        This rank's counters.
    copy_gbs
        Copy bandwidth of all ranks together.
    """
    if comm.size == 1:
        return loop_rows(reports, copy_gbs)
    by_name: dict[str, list[LoopReport]] = {}
    for found in comm.allgather(list(reports)):
        for report in found:
            by_name.setdefault(report.name, []).append(report)
    return [_row(same, copy_gbs) for same in by_name.values()]


def _row(same: Sequence[LoopReport], copy_gbs: float) -> LoopRow:
    """Return the row of one loop; only ranks that keep times count in what depends on them."""
    timed = [report for report in same if report.seconds]
    copy = copy_gbs if len(timed) == len(same) else 0.0
    (row,) = loop_rows([_merged(timed or same)], copy)
    return replace(row, mean_seconds=sum(report.seconds for report in timed) / max(1, len(timed)))


def _merged(same: Sequence[LoopReport]) -> LoopReport:
    """Return the reports of one loop on several ranks as one: the slowest time, the bytes of all."""
    vector = {report.vectorised for report in same}
    return replace(
        same[0],
        calls=max(report.calls for report in same),
        seconds=max(report.seconds for report in same),
        useful_bytes=sum(report.useful_bytes for report in same),
        strategy="/".join(dict.fromkeys(report.strategy for report in same)),
        layout="/".join(dict.fromkeys(report.layout for report in same)),
        vectorised=vector.pop() if len(vector) == 1 else None,
    )


@dataclass(frozen=True)
class ExchangeRow:
    """An exchange of all ranks.

    Attributes
    ----------
    name, transport
        The dats, and how the messages travel.
    calls
        How often it ran.
    most, mean
        Seconds of the slowest rank, and of a rank on average: packing, waiting, unpacking.
    nbytes
        Bytes that all ranks send each time.
    neighbours
        Of the rank that has most.
    """

    name: str
    transport: str
    calls: int
    most: float
    mean: float
    nbytes: int
    neighbours: int

    def record(self) -> dict[str, Any]:
        """Return the row for a record."""
        return {
            "name": self.name, "transport": self.transport, "calls": self.calls, "seconds": self.most,
            "mean_seconds": self.mean, "bytes": self.nbytes, "neighbours": self.neighbours,
        }  # fmt: skip

    def cells(self) -> list[str]:
        """Return the row as texts of a table."""
        def number(value: float) -> str:
            return f"{value:,.3f}" if value else "-"

        each = f"{1e3 * self.most / self.calls:,.4f}" if self.calls and self.most else "-"
        return [self.name.replace("+", " + "), f"{self.calls:,}", number(self.most), number(self.mean), each,
                f"{self.nbytes / 1e3:,.1f}", str(self.neighbours), self.transport]  # fmt: skip


EXCHANGE_HEADINGS = ("exchange", "calls", "s", "mean s", "ms/call", "kB", "neighbours", "transport")
"""Headings of `ExchangeRow.cells`."""


def exchanges_of(chains: Iterable[Chain]) -> list[ExchangeTime]:
    """Return what the exchanges of some chains took on this rank, those of the same dats together."""
    found: dict[tuple[str, str, int], ExchangeTime] = {}
    for row in (row for chain in chains for row in chain.exchanges()):
        key = (row.name, row.transport, row.nbytes)
        if (known := found.get(key)) is not None:
            row = replace(row, calls=known.calls + row.calls, seconds=known.seconds + row.seconds)
        found[key] = row
    return list(found.values())


def exchange_rows(comm: Comm, mine: Sequence[ExchangeTime]) -> list[ExchangeRow]:
    """Return a row an exchange of all ranks. Collective."""
    by_name: dict[str, list[ExchangeTime]] = {}
    for found in comm.allgather(list(mine)):
        for row in found:
            by_name.setdefault(row.name, []).append(row)
    return [
        ExchangeRow(
            name=name,
            transport="/".join(dict.fromkeys(row.transport for row in same)),
            calls=max(row.calls for row in same),
            most=max(row.seconds for row in same),
            mean=sum(row.seconds for row in same) / len(same),
            nbytes=sum(row.nbytes for row in same),
            neighbours=max(row.neighbours for row in same),
        )
        for name, same in by_name.items()
    ]


def spread(comm: Comm, values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the largest and the mean over the ranks of some numbers. Collective."""
    table = np.array(comm.allgather(list(values.values())), dtype=np.float64)
    most, mean = table.max(axis=0), table.mean(axis=0)
    return {name: {"max": float(most[k]), "mean": float(mean[k])} for k, name in enumerate(values)}
