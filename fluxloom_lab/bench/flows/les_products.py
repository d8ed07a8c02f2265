"""The product with a distributed Laplacian: its exchange before it, and beside its interior rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.machine.ranks import rank_devices_of
from fluxloom_lab.bench.base import Record, Tell
from fluxloom_lab.bench.flows.les_model import hidden_share
from fluxloom_lab.bench.options import Ranked, cells_option, iterations_option, rounds_option
from fluxloom_lab.bench.rounds import race, summed
from fluxloom_lab.options import option
from fluxloom_lab.problems.boxes import lattice_matrix

__all__ = ["lattice_of", "product_record", "rows_from_text"]

_UNITS = {"k": 1_000, "m": 1_000_000}


def rows_from_text(text: str) -> int:
    """Return a number of rows such as 12M, 400k or 5000.

    Raises
    ------
    CaseError
        For anything else, or fewer than 27.
    """
    word = text.strip().lower()
    number, unit = (word[:-1], _UNITS[word[-1]]) if word[-1:] in _UNITS else (word, 1)
    try:
        rows = round(float(number) * unit)
    except (ValueError, OverflowError):
        rows = 0
    if not 27 <= rows < 2**31 // 8:
        raise CaseError(f"--weak {text!r}: rows a rank are wanted, from 27 to 268M, as 400k or 12M")
    return rows


def lattice_of(rows: int, ranks: int) -> tuple[int, int, int]:
    """Return the lattice ``(nz, ny, nx)`` of which each rank gets a cube of about so many rows, along ``z``."""
    side = max(3, round(rows ** (1.0 / 3.0)))
    return ranks * max(1, round(rows / side**2)), side, side


@dataclass(frozen=True)
class LesOptions(Ranked):
    """Options of the benchmark ``les``."""

    cells: str = cells_option("Size of the box: N or NX,NY,NZ.")
    weak: str = option("", metavar="ROWS", help="Rows a rank, of a product alone.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()


def product_record(options: LesOptions, tell: Tell) -> Record:
    """Measure the product ``y = A x`` of so many rows a rank (``options.weak``). Collective."""
    context, comm = options.context(), options.comm
    if not context.device.native:
        raise CaseError("--weak: products on the reference device are not timed; take cpu, opencl or cuda")
    shape = lattice_of(rows_from_text(options.weak), comm.size)
    total = int(np.prod(shape))
    tell(f"building {' x '.join(str(n) for n in reversed(shape))} rows on {comm.size} ranks")
    start = time.perf_counter()
    matrix, x, y, error = _problem(context, shape)
    tell(f"set-up {time.perf_counter() - start:.1f} s")
    meter = meter_for(context.device, context.threads)
    before = meter.measure().copy_gbs
    times = _measured(matrix, x, y)
    copy = summed(comm, 0.5 * (before + meter.measure().copy_gbs))
    nbytes = summed(comm, matrix.product(x, y).useful_bytes)
    crew = rank_devices_of(context)
    return Record(
        case="les", model="product with the lattice Laplacian", **crew.place,
        precision="float64", sizes={"cells": total}, copy_gbs=copy, seconds=times["overlapped_ms"] / 1e3,
        metrics={
            "shape": list(reversed(shape)), "rows_a_rank": total / comm.size, "threads": context.threads,
            "error": error, **times,
            "product_gbs": 1e-6 * nbytes / times["product_ms"],
            "product_percent_of_copy": 1e-4 * nbytes / times["product_ms"] / copy,
        },
        loops=(), command=options.command,
    )  # fmt: skip


def _problem(context: Context, shape: tuple[int, int, int]) -> tuple[SparseMatrix, Dat, Dat, float]:
    """Return matrix, vectors, and by how much a product differs from that of SciPy."""
    comm, total = context.comm, int(np.prod(shape))
    matrix, numbers, rows = lattice_matrix(context, shape)
    values = np.sin(np.arange(total, dtype=np.float64))
    x, y = context.dat(matrix.rows, values[numbers], "x"), context.dat(matrix.rows, name="y")
    matrix.product(x, y)()
    wanted = rows @ values
    found = np.abs(y.read() - wanted[numbers - comm.rank * total // comm.size]).max(initial=0.0)
    return matrix, x, y, float(comm.reduce(np.array([found]), "max")[0])


def _measured(matrix: SparseMatrix, x: Dat, y: Dat) -> dict[str, Any]:
    """Return the milliseconds of a product in all ways; there and back again, so that every one has an exchange."""
    context = x.context
    both = Chain([matrix.product(x, y), matrix.product(y, x)], fuse=False, name="there and back")
    alone = Chain([matrix.product(x, y)], fuse=False, name="there")
    for chain in (both, alone, alone):
        chain()
    if not context.distributed:
        (seconds,) = race(context, [alone])
        return {"product_ms": 1e3 * seconds, "exchange_ms": 0.0, "overlapped_ms": 1e3 * seconds,
                "one_after_the_other_ms": 1e3 * seconds, "hidden": None, "transport": ""}  # fmt: skip
    overlapped, product = both.sequences[0], alone.sequences[0]
    exchanges = overlapped.exchanges
    messages = context.device.sequencer([item for exchange in exchanges for item in exchange.items])

    def one_after_the_other() -> None:
        messages()
        product()
        product()

    beside, bare, sent, cut, apart = race(
        context, [overlapped, product, messages, overlapped.without_exchanges(), one_after_the_other]
    )
    exchange, both_ways = sent / 2, beside / 2
    nbytes = context.comm.allgather(sum(e.bytes_sent for e in exchanges) // 2)
    return {
        "product_ms": 1e3 * bare, "product_cut_ms": 1e3 * cut / 2, "exchange_ms": 1e3 * exchange,
        "one_after_the_other_ms": 1e3 * apart / 2, "overlapped_ms": 1e3 * both_ways,
        "hidden": hidden_share(bare, exchange, both_ways),
        "hidden_beside_cut": hidden_share(cut / 2, exchange, both_ways),
        "saved": hidden_share(apart / 2 - exchange, exchange, both_ways), "gain": apart / beside,
        "halo_bytes": sum(nbytes), "transport": "/".join(dict.fromkeys(e.transport.name for e in exchanges)),
    }  # fmt: skip
