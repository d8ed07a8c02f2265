"""What an immersed boundary has done beside the loops of the flow's chains, as rows of reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.immersed.recompute import ARRIVING

__all__ = ["merged", "shares"]

_FORCES = (
    "clear", "place_", "weigh", "interpolate", "force_marker", "sums_", "spread", "rest", "stretch", "bend", "advect",
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
