"""The product of one Laplacian in every format and size on one device, beside the bound of its memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any

import numpy as np

from fluxloom.cli.runs.summary import loop_rows
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import Bandwidth, Meter, best_roof, meter_for, meter_of_size
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.ragged import CSR, ELL, RaggedLayout
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.reorder import permuted, reorder
from fluxloom.perf.model import Roofline
from fluxloom_lab.bench.base import Record, Tell, device_name
from fluxloom_lab.bench.flows.les_model import spmv_bytes, spmv_read_bytes
from fluxloom_lab.bench.linear.spmv import time_calls
from fluxloom_lab.bench.options import BenchOptions, cells_option, rounds_option
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from fluxloom_lab.peers.spmv_peers import Peer, mkl_library, usual_library
from fluxloom_lab.problems.matrices import tet_dual
from fluxloom_lab.studies.traffic import minimum_bytes

__all__ = ["THESIS_BYTES", "SpmvTableBench"]

ROUNDS = 7
SIZES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Millions of rows; those of the source."""

GPU_SIZES = (*SIZES, 4.0, 12.8)
THESIS_BYTES = 76
"""Bytes a row of the source's bound: five entries of 12, one value each of x and y."""

_ENTRIES = 5
_REORDERED, _EVERY_FORMAT = 1.6, 4.0
"""Millions of rows up to which a matrix is measured in a better order too, and in all formats: the host makes them."""

_ALWAYS = ("csr", "sliced", "two_rows", "sliced_one_by_one")

_MOST_PADDING = 2.0


def _formats(context: Context) -> dict[str, tuple[RaggedLayout, Schedule]]:
    """Return the layouts and schedules of a device by the name in the table."""
    sliced, auto, device = context.row_layout(), Schedule(), context.device
    found: dict[str, tuple[RaggedLayout, Schedule]] = {"csr": (CSR(), auto), "ell": (ELL(), auto)}
    found["sliced"] = (sliced, Schedule(pairs=False) if device.items else auto)
    if not device.items:
        found["sliced_one_by_one"] = (sliced, Schedule(lanes=1))
    elif not getattr(device, "is_cpu", False):
        found["two_rows"] = (sliced, Schedule(pairs=True))
    return found | {"row_grouped": (RowGroupedCSR(), auto)}


@dataclass(frozen=True)
class _Ceilings:
    """What the memory allows: the mean copy, the best that was measured, and that with data as large as a product's."""

    copy_gbs: float
    roof: Roofline
    same_size: Roofline | None


@dataclass(frozen=True)
class _Row:
    """One format of one matrix."""

    rows: int
    entries: int
    order: str
    format: str
    seconds: float
    padding: float
    memory: _Ceilings
    report: Any = None

    @property
    def copy_gbs(self) -> float:
        """The copy bandwidth."""
        return self.memory.copy_gbs

    def record(self) -> dict[str, Any]:
        """Return what the table shows."""
        useful = minimum_bytes(self.rows, self.entries, self.rows) / self.seconds / 1e9
        model = THESIS_BYTES * self.rows / self.seconds / 1e9
        share = 100.0 / self.copy_gbs if self.copy_gbs else 0.0
        return {
            "rows": self.rows, "order": self.order, "format": self.format, "ms": 1e3 * self.seconds,
            "gflops": 2e-9 * self.entries / self.seconds, "useful_gbs": useful, "percent_of_copy": share * useful,
            "percent_of_bound": share * model, "percent_of_read_bound": self._percent(self.memory.roof),
            "percent_of_same_size_bound": self._percent(self.memory.same_size), "padding": self.padding,
        }  # fmt: skip

    def _percent(self, roof: Roofline | None) -> float | None:
        """Return the speed beside the bound of copying and reading, with the entries that there are."""
        nbytes, read = (count(self.rows, self.rows, self.entries) for count in (spmv_bytes, spmv_read_bytes))
        return roof.percent_of_roof(nbytes, 0.0, self.seconds, read=read) if roof else None


@dataclass(frozen=True)
class SpmvTableOptions(BenchOptions):
    """Options of the benchmark ``spmv-table``."""

    cells: str = cells_option("Rows in millions: 0.05,0.8,12.8.", "N,...")
    rounds: int = rounds_option()


class SpmvTableBench:
    """Time of ``y = A x`` in double precision, the Laplacian of a tetrahedral mesh, 5 entries a row.

    ``--cells`` gives the rows in millions: ``0.05,0.8,12.8``. ``percent_of_bound`` is the speed beside that of 76 bytes
    a row at the copy bandwidth (the table of a PhD thesis on portable algebra-based CFD, section 2.4),
    ``percent_of_copy`` that of all arrays once. Neither sees that a product reads nearly all that it moves:
    ``percent_of_read_bound`` is beside the bound of `fluxloom.perf.model.Roofline` with the measured sum, and
    ``percent_of_same_size_bound`` beside that bound with sums and copies of as many bytes as matrix and vectors have,
    which are in the caches as far as these are (not on devices with a memory of their own). Matrices are measured as
    their mesh numbers them and, up to 1.6 million rows, in the order of `fluxloom.linalg.matrix.reorder`; ELL and
    row-grouped CSR up to four million.
    """

    title = "Sparse matrix times vector: formats and sizes on one device"
    options = SpmvTableOptions

    def run(self, options: SpmvTableOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.context()
        context.tuning = False
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: there is nothing to time")
        found: list[_Row] = []
        missing: set[str] = set()
        meter = meter_for(context.device, context.threads)
        for millions in _sizes(options.cells, context):
            for order, matrix in _orders(millions):
                found += _measure(context, matrix, order, options.rounds or ROUNDS, meter, missing)
                tell(_line(found, order))
        for reason in sorted(missing):
            tell(f"left out: {reason}")
        best = max(found, key=lambda row: row.record()["percent_of_bound"] if row.report else -inf)
        copy = median(row.copy_gbs for row in found)
        return Record(
            case="spmv-table",
            model="tet_dual",
            device=context.device.name,
            device_name=device_name(context),
            precision="float64",
            sizes={"n": max(row.rows for row in found)},
            copy_gbs=copy,
            seconds=best.seconds,
            metrics={
                "threads": context.threads,
                "best_percent_of_bound": best.record()["percent_of_bound"],
                "percent_of_bound_at_most_rows": _at_most_rows(found),
                "table": [row.record() for row in found],
            },
            loops=loop_rows([row.report for row in found if row.report], copy),
            command=options.command,
        )


def _sizes(text: str, context: Context) -> tuple[float, ...]:
    """Return the rows, in millions.

    Raises
    ------
    CaseError
        If they are no numbers, or more than 32-bit places can hold.
    """
    default = GPU_SIZES if context.device.items and not getattr(context.device, "is_cpu", False) else SIZES
    if not text:
        return default
    try:
        sizes = tuple(float(part.strip().rstrip("mM")) for part in text.split(","))
    except ValueError:
        sizes = (0.0,)
    if not all(1e-4 <= size <= 400 for size in sizes):
        raise CaseError(f"--cells {text!r}: give rows in millions, as 0.05,0.8,12.8 (from 0.0001 to 400)")
    return sizes


def _orders(millions: float) -> Iterator[tuple[str, Any]]:
    """Yield the matrix as the mesh numbers it, and in a better order."""
    matrix = tet_dual(round(_ENTRIES * 1e6 * millions), 1)
    yield "mesh", matrix
    if millions <= _REORDERED:
        yield "reordered", permuted(matrix, reorder(matrix))


def _measure(context: Context, matrix: Any, order: str, rounds: int, meter: Meter, missing: set[str]) -> list[_Row]:
    """Measure a matrix in all formats, rounds in turn, and check the results."""
    x = np.random.default_rng(2).random(matrix.shape[1])
    expected = matrix @ x
    known: dict[RaggedLayout, SparseMatrix] = {}
    loops: dict[str, Loop] = {}
    paddings: dict[str, float] = {}
    for name, (layout, schedule) in _formats(context).items():
        if matrix.shape[0] > 1.1e6 * _EVERY_FORMAT and name not in _ALWAYS:
            continue
        if layout not in known:
            known[layout] = SparseMatrix.from_scipy(context, matrix, layout=layout)
        ours = known[layout]
        if ours.padding > _MOST_PADDING:
            missing.add(f"{name} of {matrix.shape[0]:,} rows, {ours.padding:.1f} places an entry")
            continue
        given, result = context.dat(ours.columns, x, "x"), context.dat(ours.rows, name="y")
        loops[name], paddings[name] = ours.product(given, result, schedule), ours.padding
        loops[name]()
        error = np.abs(result.read() - expected).max(initial=0.0)
        if not error <= 1e-12 * np.abs(expected).max(initial=0.0):
            raise FluxloomError(f"{name}: the product of {matrix.shape[0]:,} rows is off by {error:.2e}")
    peers = _peers(context, matrix, x, missing)
    runs = {**loops, **{name: peer.run for name, peer in peers.items() if peer.clock is None}}
    before = meter.measure(3)
    seconds = dict(zip(runs, time_calls(context, *runs.values(), rounds=rounds), strict=True))
    seconds |= {name: peer.clock(peer.run, rounds) for name, peer in peers.items() if peer.clock is not None}
    memory = _ceilings(
        context, spmv_bytes(matrix.shape[0], matrix.shape[1], int(matrix.nnz)), [before, meter.measure(3)]
    )
    reports = {name: loop.report() for name, loop in loops.items()}
    return [
        _Row(matrix.shape[0], int(matrix.nnz), order, name, value, paddings.get(name, 1.0), memory, reports.get(name))
        for name, value in seconds.items()
    ]


def _ceilings(context: Context, footprint: int, found: list[Bandwidth]) -> _Ceilings:
    """Return the ceilings from what the meter said, and from a meter of the size of a product."""
    own = meter_of_size(context.device, context.threads, footprint)
    copy = sum(item.copy_gbs for item in found) / len(found)
    return _Ceilings(copy, best_roof(found), best_roof([own.measure()]) if own else None)


def _peers(context: Context, matrix: Any, x: np.ndarray, missing: set[str]) -> dict[str, Peer]:
    """Return the libraries of a device; what is not there is noted."""
    peers: dict[str, Peer] = {}
    try:
        usual = usual_library(context, matrix, x)
        if usual is not None:
            peers["scipy" if context.device.name == "cpu" else "cusparse_csr"] = usual
        if context.device.name == "cpu":
            peers["mkl"] = mkl_library(matrix, x, context.threads)
    except FluxloomError as error:
        missing.add(str(error))
    return peers


def _at_most_rows(found: list[_Row]) -> float:
    """Return the best share of the bound at the largest size."""
    most = max(row.rows for row in found)
    return max(row.record()["percent_of_bound"] for row in found if row.rows == most and row.report)


def _line(found: list[_Row], order: str) -> str:
    rows = found[-1].rows
    shown = ", ".join(
        f"{row.format} {row.record()['gflops']:.2f}" for row in found if (row.rows, row.order) == (rows, order)
    )
    return f"{rows:,} rows, {order}: copy {found[-1].copy_gbs:.1f} GB/s; GFLOP/s: {shown}"
