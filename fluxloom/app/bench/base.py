"""What a benchmark is: options in, one record out; a registry so that others plug in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fluxloom.app.application import Runner
from fluxloom.app.summary import LoopRow
from fluxloom.app.system import commit, processor
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.layout import AoS, Blocked, Layout, SoA
from fluxloom.core.registry import Registry
from fluxloom.dsl.context import Context
from fluxloom.dsl.schedule import Schedule

__all__ = [
    "LAYOUTS",
    "Bench",
    "BenchOptions",
    "Record",
    "Tell",
    "benches",
    "cells_from_text",
    "count_gpus",
    "device_name",
    "steps",
]

Tell = Callable[[str], None]
"""Takes a line of progress."""

NAMED_SIZES = {"72k": (126, 190), "720k": (400, 600), "2.88m": (800, 1200)}
"""Sizes of the Airfoil mesh by the number of cells: (i, j)."""

LAYOUTS: dict[str, Layout] = {"aos": AoS(), "soa": SoA(), "blocked": Blocked()}
"""Layouts by the name on the command line."""


@dataclass(frozen=True)
class BenchOptions:
    """What the command line says.

    Attributes
    ----------
    device, threads, schedule, fused
        How to run.
    cells
        Size of the problem as text; each benchmark has its own default.
    iterations, rounds
        Iterations a round, and timed rounds; 0: the benchmark's default.
    precision
        Of storage, for benchmarks that have a choice.
    layout
        Of the values, a key of `LAYOUTS`; empty: the benchmark's default.
    exhaustive
        Whether every schedule of every loop is timed too.
    strategies
        Whether the results of all strategies are compared too.
    command
        The command line, for the record.
    """

    device: str = "cpu"
    threads: int = 0
    cells: str = ""
    iterations: int = 0
    rounds: int = 0
    schedule: Schedule = field(default_factory=Schedule)
    fused: bool = True
    precision: str = "float32"
    layout: str = ""
    exhaustive: bool = False
    strategies: bool = False
    command: str = ""

    def context(self) -> Context:
        """Return a new context on the device."""
        return Context(self.device, threads=self.threads)

    @property
    def chosen_layout(self) -> Layout | None:
        """The layout of the values; None: the benchmark's default.

        Raises
        ------
        CaseError
            If there is no such layout.
        """
        if self.layout and self.layout not in LAYOUTS:
            hint = did_you_mean(self.layout, LAYOUTS)
            raise CaseError(f"--layout {self.layout!r}{hint} (allowed: {', '.join(LAYOUTS)})")
        return LAYOUTS[self.layout] if self.layout else None


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


class Bench(Protocol):
    """A benchmark.

    One that knows the options ``layout``, ``exhaustive`` or ``strategies`` names them in an attribute ``extras``.
    """

    @property
    def title(self) -> str:
        """What it measures, in one line."""
        ...

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        ...


def benches() -> Registry[Bench]:
    """Return the known benchmarks, open to the entry points ``fluxloom.benches``."""
    from fluxloom.app.bench.airfoil import AirfoilBench
    from fluxloom.app.bench.lbm import LbmBench
    from fluxloom.app.bench.overhead import OverheadBench
    from fluxloom.app.bench.rings import RingsBench
    from fluxloom.app.bench.spmv import SpmvBench

    registry: Registry[Bench] = Registry("benchmark", group="fluxloom.benches", error=CaseError)
    registry.register("airfoil", AirfoilBench())
    registry.register("lbm", LbmBench())
    registry.register("overhead", OverheadBench())
    registry.register("rings", RingsBench())
    registry.register("spmv", SpmvBench())
    return registry


def cells_from_text(text: str, default: str) -> tuple[int, int]:
    """Return the size ``(i, j)`` of an Airfoil mesh.

    Parameters
    ----------
    text
        ``"720k"``, ``"2.88M"``, or ``"I,J"``; empty for the default.

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
    names = [name.replace("m", "M") for name in NAMED_SIZES]
    hint = did_you_mean(word, names)
    raise CaseError(f"--cells {word!r}{hint} (allowed: {', '.join(names)}, or I,J with I >= 2 and J >= 1: 3 I J cells)")


def device_name(context: Context) -> str:
    """Return the hardware behind a context."""
    if context.device.name in ("cpu", "reference"):
        count = context.threads
        return f"{processor().name}, {count} thread{'s' if count != 1 else ''}"
    return context.device.describe()


def count_gpus(context: Context) -> int:
    """Return how many GPUs a context has: a device of work items is one, unless its driver runs on a processor."""
    return int(context.device.items and not getattr(context.device, "is_cpu", False))


def steps(runner: Runner, count: int) -> None:
    """Advance a runner and wait for the result."""
    for _ in range(count):
        runner.advance()
    runner.residual()
