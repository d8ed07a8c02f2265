"""What a benchmark is: options in, one record out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import Any, Protocol

from fluxloom.app.application import Runner
from fluxloom.app.crew import count_gpus, device_name, place_of
from fluxloom.app.summary import LoopRow
from fluxloom.app.system import commit
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.layout import AoS, Blocked, Layout, SoA
from fluxloom.dsl.context import Context
from fluxloom.dsl.schedule import Schedule
from fluxloom.mesh.distribute import Partition

__all__ = [
    "LAYOUTS",
    "METHODS",
    "Bench",
    "BenchOptions",
    "Record",
    "Tell",
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

METHODS: tuple[Partition, ...] = ("auto", "kway", "rcb", "block")
"""How ranks can divide a mesh."""

LAYOUTS: dict[str, Layout] = {"aos": AoS(), "soa": SoA(), "blocked": Blocked()}
"""Layouts by the name on the command line."""


Keep = Callable[["Record"], None]
"""Takes the record of what has been measured so far."""


def _forget(_: Record) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class BenchOptions:
    """What the command line says.

    Attributes
    ----------
    device, threads, schedule, fused
        How to run.
    devices
        Several devices of one process, as ``"cuda:0,cpu:12"``.
    cells
        Size of the problem as text; each benchmark has its own default.
    iterations, rounds
        Iterations a round, and timed rounds; 0: the benchmark's default.
    precision
        Of storage, for benchmarks that have a choice; empty: the benchmark's default.
    layout
        Of the values, a key of `LAYOUTS`; empty: the benchmark's default.
    exhaustive
        Whether every schedule of every loop is timed too.
    strategies
        Whether the results of all strategies are compared too.
    command
        The command line, for the record.
    comm
        The ranks.
    ranks
        What each rank computes on, as text (scaling: the numbers of ranks); empty: ``device`` and ``threads``.
    partition, shares
        How the mesh is divided among several ranks, as in the table ``[partition]`` of a case file.
    transport
        How messages between GPUs travel.
    transports
        Whether all ways in which they can travel are compared too.
    strong, weak
        Of the benchmark scaling: sizes that stay, and cells a rank.
    sources
        Files of records that are drawn instead of measuring.
    draw
        File of the picture.
    peers
        Other programs to compare with, as ``"petsc"``.
    table
        Of the benchmark compressible: ``"kernels"`` measures the loops over faces instead of a flow.
    model, flux, limiter, loops, storage
        Of the benchmark compressible; empty: its defaults.
    mesh, refine
        File of a mesh, in place of a box, and how often it is refined (compressible, setup).
    kind
        Cells of a box (setup); empty: hexahedra.
    python
        Interpreter that has Kratos (kratos).
    nodes, preconditioner, tune
        Of the benchmark edge_flow: numbers of points, preconditioners of the pressure, and whether steps after a tuning
        of the loops are timed beside the others.
    order, dofs, formats, integration
        Of the benchmark fem: orders of elements, degrees of freedom, formats and orders of integration; empty: all
        orders and formats, its default size, and the order of integration A.
    methods
        Of the benchmark tridiagonal: what is timed; empty: everything that can be.
    lattice, collision, streaming
        Of the benchmark lbm, several with commas; empty: its defaults.
    force, walls
        Of the benchmark lbm: how a force acts (none, uniform or field), and whether the box is a cavity with bodies.
    fluid
        Of the benchmark lbm: shares of the box that are fluid.
    full
        Whether everything that is not named is swept (lbm), or all sizes are run (ib).
    threads_sweep
        Whether every number of threads is measured too, close together and spread (lbm).
    keep
        Takes the record of what has been measured so far, after each part of a long benchmark (ib): the command line
        writes it, so that a run which is stopped leaves a record; its ``metrics`` have ``"complete": False``.
    """

    device: str = "cpu"
    threads: int = 0
    cells: str = ""
    iterations: int = 0
    rounds: int = 0
    schedule: Schedule = field(default_factory=Schedule)
    fused: bool = True
    precision: str = ""
    layout: str = ""
    exhaustive: bool = False
    strategies: bool = False
    command: str = ""
    comm: Comm = field(default_factory=SelfComm)
    ranks: str = ""
    partition: Partition = "auto"
    shares: str | Sequence[float] = "auto"
    transport: str = "auto"
    transports: bool = False
    strong: str = ""
    weak: str = ""
    sources: str = ""
    draw: str = ""
    devices: str = ""
    peers: str = ""
    table: str = ""
    model: str = ""
    flux: str = ""
    limiter: str = ""
    loops: str = ""
    storage: str = ""
    mesh: str = ""
    refine: int = 0
    kind: str = ""
    python: str = ""
    nodes: str = ""
    preconditioner: str = ""
    tune: bool = False
    order: str = ""
    dofs: str = ""
    formats: str = ""
    integration: str = ""
    methods: str = ""
    lattice: str = ""
    collision: str = ""
    streaming: str = ""
    force: str = ""
    walls: bool = False
    fluid: str = ""
    full: bool = False
    threads_sweep: bool = False
    keep: Keep = field(default=_forget, repr=False)

    def context(self, **changes: Any) -> Context:
        """Return a new context on the device of this rank; ``changes`` are other arguments of it."""
        place = place_of(self.comm, self.device, self.threads, self.ranks)
        named = {"threads": place.threads, "comm": self.comm, "transport": self.transport} | changes
        return Context(named.pop("device", place.device), **named)

    def native_context(self) -> Context:
        """Return a new context on a device that runs generated code.

        Raises
        ------
        CaseError
            On one that does not.
        """
        context = self.context()
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: there is nothing to time")
        return context

    @property
    def real_type(self) -> str:
        """The type of values of benchmarks with real numbers: float64 by default, or float32.

        Raises
        ------
        CaseError
            For any other precision.
        """
        if self.precision not in ("", "float64", "float32"):
            raise CaseError(f"--precision {self.precision!r} (allowed: float64, float32)")
        return self.precision or "float64"

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

    One that knows the options ``layout``, ``exhaustive``, ``strategies`` and so on names them in an attribute
    ``extras``; there one that runs on several ranks has ``"ranks"``, and ``"slices"`` if it cuts its problem into equal
    ones, which no option divides. On several ranks `run` is collective, and the
    record is wanted on rank 0.
    """

    @property
    def title(self) -> str:
        """What it measures, in one line."""
        ...

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        ...


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


def steps(runner: Runner, count: int) -> None:
    """Advance a runner and wait for the result."""
    for _ in range(count):
        runner.advance()
    runner.residual()
