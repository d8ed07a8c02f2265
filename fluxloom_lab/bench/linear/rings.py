"""The rings benchmark: R products with an exchange each against R products with one exchange, by size of the matrix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from fluxloom.comm import detect
from fluxloom.comm.base import Comm, Message
from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.linalg.matrix.rings import RingProduct
from fluxloom.machine.ranks import place_of
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom_lab.bench.base import Record, Tell, count_gpus, device_name
from fluxloom_lab.bench.options import Ranked, Scheduled, cells_option, rounds_option

__all__ = ["RingsBench", "crossover"]

RINGS = (2, 3, 4)
SMALLEST, LARGEST = 125, 32_000
"""Rows a rank; each size is twice the one before."""

ROUNDS = 40
"""Short ones, of which the shortest counts: whatever else runs on the machine only adds time, to all ranks at once."""

_ROUND_SECONDS, _MOST_CALLS = 5e-4, 100
_PINGS = 50

Run = Callable[[], object]


@dataclass(frozen=True)
class _Row:
    """One size and number of rings."""

    rows: int
    rings: int
    plain: float
    together: float
    redundancy: float

    @property
    def speedup(self) -> float:
        """How much faster one exchange is."""
        return self.plain / self.together

    def record(self) -> dict[str, Any]:
        return {
            "rows": self.rows, "rings": self.rings, "plain_us": 1e6 * self.plain, "rings_us": 1e6 * self.together,
            "speedup": self.speedup, "redundancy": self.redundancy,
        }  # fmt: skip


def crossover(sizes: Sequence[int], ratios: Sequence[float], level: float = 1.0) -> float | None:
    """Return the size at which a ratio first falls below a level, interpolated in logarithms between two sizes.

    None if it never does; the smallest size if it is below there.

    Parameters
    ----------
    sizes
        Ascending.
    ratios
        Of each size.
    level
        What the ratio is compared with.
    """
    below = next((k for k, ratio in enumerate(ratios) if ratio < level), None)
    if not below:
        return None if below is None else float(sizes[0])
    k = below - 1
    part = log(ratios[k] / level) / log(ratios[k] / ratios[below])
    return exp(log(sizes[k]) + part * log(sizes[below] / sizes[k]))


@dataclass(frozen=True)
class RingsOptions(Ranked, Scheduled):
    """Options of the benchmark ``rings``."""

    cells: str = cells_option("The most rows a rank.", "ROWS")
    rounds: int = rounds_option()


class RingsBench:
    """Time of ``Aᴿ x`` for Laplacians of meshes of growing size, cut into a slice a rank.

    ``--cells`` gives the most rows a rank. Start it on ranks: ``mpiexec -n 2 fluxloom bench rings``.
    """

    title = "R distributed products with one exchange: the size below which rings of halo rows pay"
    options = RingsOptions

    def run(self, options: RingsOptions, tell: Tell) -> Record:
        """Measure; every rank gets the same numbers, the first one tells."""
        comm = detect()
        if comm.size < 2:
            raise CaseError("the benchmark rings needs ranks that talk: mpiexec -n 2 fluxloom bench rings")
        place = place_of(comm, options.device, options.threads or 1, options.ranks)
        context = Context(place.device, threads=place.threads)
        meter = meter_for(context.device, context.threads)
        copy = meter.measure(3).copy_gbs
        latency = _latency(comm)
        found: list[_Row] = []
        for rows in _sizes(options.cells):
            for row in _measure(context, comm, rows, options):
                found.append(row)
                if comm.rank == 0:
                    tell(f"{row.rows:,} rows a rank, {row.rings} rings: {1e6 * row.plain:.1f} us plain, "
                         f"{1e6 * row.together:.1f} us with one exchange, {row.speedup:.2f} x")  # fmt: skip
        metrics: dict[str, Any] = {"latency_us": 1e6 * latency}
        for rings in RINGS:
            mine = [row for row in found if row.rings == rings]
            sizes, speedups = [row.rows for row in mine], [row.speedup for row in mine]
            metrics[f"crossover_rows_{rings}"] = crossover(sizes, speedups)
            metrics[f"ten_percent_rows_{rings}"] = crossover(sizes, speedups, 1.1)
            metrics[f"best_speedup_{rings}"] = max(speedups)
        return Record(
            case="rings",
            model="laplacian3d",
            device=context.device.name,
            device_name=device_name(context),
            precision="float64",
            sizes={"n": comm.size * max(row.rows for row in found)},
            copy_gbs=copy,
            seconds=found[-1].together,
            metrics=metrics | {"products": [row.record() for row in found]},
            loops=(),
            command=options.command,
            gpus=comm.size * count_gpus(context),
            ranks=comm.size,
        )


def _sizes(text: str) -> Iterator[int]:
    """Yield the rows a rank that are measured.

    Raises
    ------
    CaseError
        If ``--cells`` is not a number of rows.
    """
    word = text.strip() or str(LARGEST)
    if not word.isdigit() or int(word) < SMALLEST:
        raise CaseError(f"--cells {text!r}: give the most rows a rank, at least {SMALLEST}")
    rows = SMALLEST
    while rows <= int(word):
        yield rows
        rows *= 2


def _measure(context: Context, comm: Comm, rows: int, options: RingsOptions) -> Iterator[_Row]:
    """Yield the times of all numbers of rings for one size."""
    from fluxloom_lab.problems.matrices import GENERATORS

    matrix: Any = GENERATORS["laplacian3d"](15 * rows * comm.size, 1)
    total = matrix.shape[0]
    mine = slice(comm.rank * total // comm.size, (comm.rank + 1) * total // comm.size)
    own, x = matrix[mine], np.random.default_rng(2).random(total)[mine]
    for rings in RINGS:
        pair = [
            RingProduct(context, own, rings=r, times=rings, comm=comm, schedule=options.schedule, tag=r)
            for r in (1, rings)
        ]
        for product in pair:
            product.start(x)
        watch = Stopwatch(
            options.rounds or ROUNDS, wait=context.synchronize, round_seconds=_ROUND_SECONDS, most_calls=_MOST_CALLS,
            ranks=comm, counts=min,
        )  # fmt: skip
        plain, together = watch.race([product.run for product in pair])
        redundancy = float(comm.reduce(np.array([pair[1].plan.redundancy]), "max")[0])
        for product in pair:
            product.close()
        yield _Row(total // comm.size, rings, plain, together, redundancy)


def _latency(comm: Comm) -> float:
    """Return the seconds of an exchange of one number between neighbours in a ring of ranks."""
    there, back = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent, received = np.zeros(1), np.zeros(1)
    channel = comm.channel([Message(there, sent)], [Message(back, received)], 0)
    found = []
    for _ in range(ROUNDS):
        comm.barrier()
        start = time.perf_counter()
        for _ in range(_PINGS):
            channel.start()
            channel.finish()
        found.append(float(comm.reduce(np.array([time.perf_counter() - start]), "max")[0]) / _PINGS)
    channel.close()
    return min(found)
