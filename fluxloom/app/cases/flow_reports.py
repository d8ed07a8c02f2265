"""What the loops of a flow have done, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.report import LoopReport

__all__ = ["merged_reports"]


def merged_reports(chains: Sequence[Chain]) -> list[LoopReport]:
    """Return the counters of each loop or fused group of some chains; those of the same name and size together."""
    found: dict[tuple[str, int, str], LoopReport] = {}
    for report in (report for chain in chains for report in chain.reports()):
        key = (report.name, report.useful_bytes, report.strategy)
        if (known := found.get(key)) is not None:
            report = replace(report, calls=known.calls + report.calls, seconds=known.seconds + report.seconds)
        found[key] = report
    return list(found.values())
