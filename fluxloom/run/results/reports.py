"""What the loops of a flow have done, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport

__all__ = ["executables", "loops_once", "merged_reports"]

_SOLVERS = "fluxloom.solvers."


def merged_reports(parts: Sequence[Chain | Loop]) -> list[LoopReport]:
    """Return the counters of each loop or fused group that has run; those of the same name and size together.

    While nothing has run they are those of all loops.
    """
    every = [report for part in parts for report in (part.reports() if isinstance(part, Chain) else [part.report()])]
    found: dict[tuple[str, int, str], LoopReport] = {}
    for report in [report for report in every if report.calls] or every:
        key = (report.name, report.useful_bytes, report.strategy)
        if (known := found.get(key)) is not None:
            report = replace(report, calls=known.calls + report.calls, seconds=known.seconds + report.seconds)
        found[key] = report
    return list(found.values())


def loops_once(parts: Sequence[Chain | Loop]) -> list[Loop]:
    """Return the loops of chains and loops; of those with the same name the first."""
    found: dict[str, Loop] = {}
    for loop in (loop for part in parts for loop in (part.loops if isinstance(part, Chain) else (part,))):
        found.setdefault(loop.name, loop)
    return list(found.values())


def executables(*owners: object, without: tuple[type, ...] = ()) -> list[Chain | Loop]:
    """Return the chains and loops that solvers keep, each once.

    They are found in the attributes of solvers, in lists there, and in the solvers' parts; not in those of the types
    ``without``. A solver that gains a chain, or one that makes some only when they are needed, has nothing to tell.
    """
    found: dict[int, Chain | Loop] = {}
    seen: set[int] = set()

    def look(item: object) -> None:
        if isinstance(item, Chain | Loop):
            found[id(item)] = item
        elif id(item) in seen or isinstance(item, without):
            return
        elif type(item).__module__.startswith(_SOLVERS) or isinstance(item, list | tuple | Mapping):
            seen.add(id(item))
            inside: Iterable[object] = item if isinstance(item, list | tuple) else _values(item)
            for part in inside:
                look(part)

    for owner in owners:
        look(owner)
    return list(found.values())


def _values(item: object) -> Iterable[object]:
    return item.values() if isinstance(item, Mapping) else vars(item).values() if hasattr(item, "__dict__") else ()
