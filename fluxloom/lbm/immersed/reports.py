"""What an immersed boundary has done beside the loops of the flow's chains, as rows of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fluxloom.dsl.report import LoopReport
from fluxloom.lbm.immersed.attached import Attached
from fluxloom.lbm.immersed.data import host_report
from fluxloom.lbm.immersed.redo import ARRIVING

__all__ = ["merged", "reports_of", "shares"]

_PARTS = {"ahead": "markers: ahead", "waiting": "markers: waiting", "markers": "markers: forces", "asking": "messages"}

_FORCES = (
    "clear", "place_", "weigh_", "interpolate", "force_marker", "sums_", "spread", "rest", "stretch", "bend", "advect",
    "move bodies", "move freely", "sum over ranks",
)  # fmt: skip
"""What the names of loops and steps at markers begin with."""

_HOST = ("markers: ", "messages")


def shares(reports: Iterable[LoopReport]) -> dict[str, float]:
    """Return the parts of the time of a flow with bodies; empty where no times are known.

    ``prediction``: what arrives around the markers; ``forces``: all at markers, of a host beside the flow too;
    ``correction``: the step again around the markers; ``cells``: everything else.
    """
    rows = [row for row in reports if row.calls]
    hosted = any(row.name.startswith(_HOST) for row in rows)
    found = dict.fromkeys(("cells", "prediction", "forces", "correction"), 0.0)
    for row in rows:
        name = row.name
        if name.startswith(_HOST):
            found["forces"] += row.seconds
        elif name.startswith(ARRIVING):
            found["prediction"] += row.seconds
        elif name.startswith("immersed "):
            found["correction"] += row.seconds
        elif name.startswith(_FORCES):
            found["forces"] += 0.0 if hosted else row.seconds  # of a host: in its own rows
        else:
            found["cells"] += row.seconds
    total = sum(found.values())
    return {part: seconds / total for part, seconds in found.items()} if found["cells"] > 0 else {}


def reports_of(parts: Sequence[Attached]) -> list[LoopReport]:
    """Return a row for each kind of step that has run.

    Interpolation and spreading at computed addresses, the host's steps (bodies move, free ones solve their equations,
    sums over ranks); and of pipelines with a host its loops, and for how long it did what.
    """
    rows: list[LoopReport] = []
    for part in parts:
        rows += [step.report() for step in part.counted]
        if part.host is not None:
            rows += [row for chain in part.host.chains for row in chain.reports()]
            rows += [host_report(_PARTS[name], part.host.steps, s) for name, s in part.host.seconds.items() if s]
    return merged(rows)


def merged(rows: Iterable[LoopReport]) -> list[LoopReport]:
    """Return those that have run; those of the same name together."""
    found: dict[tuple[str, str], LoopReport] = {}
    for row in rows:
        if row.calls:
            key = (row.name, row.strategy)
            if (known := found.get(key)) is not None:
                calls, seconds = known.calls + row.calls, known.seconds + row.seconds
                moved = (known.useful_bytes * known.calls + row.useful_bytes * row.calls) // calls
                row = replace(row, calls=calls, seconds=seconds, useful_bytes=moved)
            found[key] = row
    return list(found.values())
