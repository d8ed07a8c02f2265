"""What a benchmark returns, a record, and how it reads sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

from fluxloom.cli.runs.summary import LoopRow
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.machine.ranks import count_gpus, device_name
from fluxloom.machine.system import commit
from fluxloom.solvers.airfoil.flow import Airfoil

__all__ = [
    "Record",
    "Tell",
    "box_from_text",
    "cells_from_text",
    "count_from_text",
    "count_gpus",
    "device_name",
    "shape_of",
    "steps",
]

Tell = Callable[[str], None]
"""Takes a line of progress."""

NAMED_SIZES = {"72k": (126, 190), "720k": (400, 600), "2.88m": (800, 1200)}
"""Sizes of the Airfoil mesh by the number of cells: (i, j)."""

_UNITS = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_FEWEST, _MOST = 1000, 2_000_000_000
"""Cells below which a number is taken for a mistake, and those whose nodes can still be numbered with 32 bits."""

@dataclass(frozen=True)
class Record:
    """The result of a benchmark; `as_json` is the format of every one of them.

    Attributes
    ----------
    case, model
        Name of the benchmark, and what it computes.
    sizes
        ``{"cells": n}`` or ``{"n": n}``.
    copy_gbs
        Copy bandwidth of the device in the same run.
    seconds
        Median time of a round.
    metrics
        Everything else that was measured.
    loops
        What each loop did in the median round.
    """

    case: str
    model: str
    device: str
    device_name: str
    precision: str
    sizes: dict[str, int]
    copy_gbs: float
    seconds: float
    metrics: dict[str, Any]
    loops: Sequence[LoopRow]
    command: str = ""
    gpus: int = 0
    ranks: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the record as it is written."""
        return {
            "case": self.case,
            "command": self.command,
            "commit": commit(),
            "device": self.device,
            "device_name": self.device_name,
            "gpus": self.gpus,
            "ranks": self.ranks,
            "precision": self.precision,
            "model": self.model,
            "sizes": self.sizes,
            "copy_gbs": self.copy_gbs,
            "seconds": self.seconds,
            "metrics": self.metrics,
            "loops": [row.record() for row in self.loops],
        }


def cells_from_text(text: str, default: str, option: str = "--cells") -> tuple[int, int]:
    """Return the size ``(i, j)`` of an Airfoil mesh.

    Parameters
    ----------
    text
        ``"720k"``, ``"2.88M"``, another number of cells like ``"46M"``, which is met as well as a mesh with
        ``j = 1.5 i`` can, or ``"I,J"``; empty for the default.
    option
        What messages call it.

    Raises
    ------
    CaseError
        For anything else.
    """
    word = (text or default).strip()
    if word.lower() in NAMED_SIZES:
        return NAMED_SIZES[word.lower()]
    parts = word.split(",")
    if len(parts) == 2 and all(part.strip().isdigit() for part in parts):
        i, j = (int(part) for part in parts)
        if i >= 2 and j >= 1:
            return i, j
    if _FEWEST <= (count := count_from_text(word)) <= _MOST:
        return shape_of(count)
    names = [name.replace("m", "M") for name in NAMED_SIZES]
    hint = did_you_mean(word, names)
    raise CaseError(
        f"{option} {word!r}{hint} (allowed: {', '.join(names)}, another number from 1k to 2G, or I,J with I >= 2 and "
        "J >= 1: 3 I J cells)"
    )


def shape_of(cells: int) -> tuple[int, int]:
    """Return the size ``(i, j)`` of an Airfoil mesh with about so many cells and ``j`` near ``1.5 i``."""
    i = max(2, round(sqrt(cells / 4.5)))
    return i, max(1, round(cells / (3 * i)))


def count_from_text(word: str) -> int:
    """Return a number like 46M, 720k or 12000; 0 for anything else."""
    number, unit = (word[:-1], word[-1].lower()) if word[-1:].lower() in _UNITS else (word, "")
    try:
        value = float(number)
    except ValueError:
        return 0
    return round(value * _UNITS.get(unit, 1)) if isfinite(value) else 0


def steps(flow: Airfoil, count: int) -> None:
    """Make iterations and wait for the result."""
    for _ in range(count):
        flow.iterate()
    flow.rms()


def box_from_text(text: str, side: int, plane: bool = False) -> tuple[int, ...]:
    """Return the shape ``(nz, ny, nx)`` of a box.

    Parameters
    ----------
    text
        ``"N"`` for a cube, or ``"NX,NY,NZ"``; empty for a cube of ``side``.
    plane
        Whether ``"NX,NY"`` is allowed too.

    Raises
    ------
    CaseError
        For anything else.
    """
    parts = [part.strip() for part in (text or str(side)).split(",")]
    if len(parts) in (1, 2 if plane else 3, 3) and all(part.isdecimal() and int(part) > 0 for part in parts):
        sides = [int(part) for part in parts]
        return tuple(reversed(sides)) if len(sides) > 1 else (sides[0],) * 3
    others = "NX,NY or NX,NY,NZ" if plane else "or NX,NY,NZ"
    raise CaseError(f"--cells {text!r} (allowed: N for a cube of N cells a side, {others})")
