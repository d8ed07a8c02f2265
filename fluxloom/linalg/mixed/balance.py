"""How many rows each of several devices should have, found by measuring while all of them work.

References
----------
The portable algebraic CFD thesis (TermoFluids), section 3.4: for each kind of kernel a tabu search on the measured
concurrent time, from the split that the bandwidths suggest. What the exchange of values at the cuts costs is part of
what is measured: the host does it, so that it counts as work of the processor.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import log10
from typing import Any, Literal

import numpy as np

from fluxloom.core.access import RW, Read
from fluxloom.core.errors import FluxloomError, SolverError, did_you_mean
from fluxloom.device.base import Device
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.hybrid import GRANULES, Balanced, Measured, balance
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.mixed.hybrid import HybridMatrix, OrderedRows, ordered_rows
from fluxloom.linalg.mixed.report import KernelBalance
from fluxloom.linalg.mixed.rows import row_bounds
from fluxloom.linalg.mixed.team import DeviceRanks, DeviceTeam, whole_shares
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.vectors import dot

__all__ = ["KINDS", "Kind", "axpy", "balance_kernel", "balance_rows"]

Kind = Literal["spmv", "axpy", "dot", "cg"]

KINDS: tuple[Kind, ...] = ("spmv", "axpy", "dot", "cg")
"""A product (values at the cuts exchanged before), ``y = a x + y``, ``x . y`` read by the host, and one iteration of
conjugate gradients with the diagonal for a preconditioner."""

_GRANULE = 128
"""Rows that stay together where there are enough: a group of work items."""

_SECONDS, _MOST = 0.02, 200
"""What a measurement takes about, and calls that it has at most."""

_LARGEST = 250.0
"""Powers of ten by which repeated products may grow."""

Step = Callable[[], object]
Steps = tuple[DeviceRanks, list[Step], Step, int, int]
"""The ranks, what each calls, what sets the values before, kernels a call, and calls at most."""


@kernel
def axpy(x: Read, y: RW, *, a: float):
    """``y = a x + y``."""
    y[0] = a * x[0] + y[0]


@dataclass(frozen=True, eq=False)
class _Work:
    """What is divided, and how."""

    team: DeviceTeam
    rows: OrderedRows
    granule: int
    layout: RaggedLayout | Sequence[RaggedLayout | None] | None

    def matrix(self, shares: Sequence[float]) -> HybridMatrix:
        """Return the matrix with given shares."""
        return HybridMatrix(self.rows, self.team, shares, granule=self.granule, layout=self.layout)


def balance_rows(
    matrix: Any,
    devices: Sequence[str | Device] | DeviceTeam,
    *,
    kind: Kind = "cg",
    layout: RaggedLayout | Sequence[RaggedLayout | None] | None = None,
    reorder: bool = False,
    granules: Sequence[int] = GRANULES,
    rounds: int = 3,
    budget: int = 40,
    restarts: Sequence[Sequence[float]] = (),
) -> HybridMatrix:
    """Return a matrix on several devices with the rows divided as was fastest.

    Where the fastest device alone is faster than every split that was tried, it gets all the rows: the answer, and all
    that was measured, is in the attribute ``balance`` of the matrix.

    Parameters
    ----------
    matrix
        Square: a sparse array or matrix of SciPy.
    devices
        Names such as ``["cuda:0", "cpu:12"]``, or a `DeviceTeam`.
    kind
        The kernel that counts, one of `KINDS`.
    layout, reorder
        As for `HybridMatrix`.
    granules, rounds, budget, restarts
        Of the search: see `fluxloom.dsl.run.hybrid.balance`.

    Raises
    ------
    SolverError, DeviceUnavailable
        As `HybridMatrix`, and for an unknown kind.
    FluxloomError
        For a search that makes no sense, or a device that cannot have all the rows.

    Examples
    --------
    >>> hybrid = balance_rows(matrix, devices=["cuda:0", "cpu:12"])
    >>> b, x = hybrid.vector(values), hybrid.vector()
    >>> status = hybrid.solver(b, x, preconditioner=Jacobi()).solve().require("pressure")
    """
    rows = ordered_rows(matrix, reorder)
    given = isinstance(devices, DeviceTeam)
    team = devices if given else DeviceTeam(devices)
    try:
        found = balance_kernel(
            rows, team, kind=kind, layout=layout, granules=granules, rounds=rounds, budget=budget, restarts=restarts
        )  # fmt: skip
        made = HybridMatrix(rows, team, found.shares, granule=_granule(rows.size, granules), layout=layout)
    except BaseException:
        if not given:
            team.close()
        raise
    made.balance, made.owns = found, not given
    return made


def balance_kernel(
    matrix: Any,
    devices: Sequence[str | Device] | DeviceTeam,
    *,
    kind: Kind = "spmv",
    layout: RaggedLayout | Sequence[RaggedLayout | None] | None = None,
    granules: Sequence[int] = GRANULES,
    rounds: int = 3,
    budget: int = 40,
    restarts: Sequence[Sequence[float]] = (),
) -> KernelBalance:
    """Return the split of one kind of kernel that was fastest; see `balance_rows`.

    Each device alone is measured first; the search begins from the rates that it has so, the bandwidths of this very
    kernel, and then follows the time that all take together. No split is measured twice there; at the end the best
    one and the fastest device are measured in turn, which decides whether the split pays.
    """
    if kind not in KINDS:
        raise SolverError(f"kind {kind!r}{did_you_mean(str(kind), KINDS)}: one of {', '.join(KINDS)}")
    rows = ordered_rows(matrix)
    with nullcontext(devices) if isinstance(devices, DeviceTeam) else DeviceTeam(devices) as team:
        work = _Work(team, rows, _granule(rows.size, granules), layout)

        def build(chosen: Sequence[int], shares: Sequence[float]) -> _Trial:
            return _Trial(_PROGRAMS[kind](work, whole_shares(team, chosen, shares)), len(chosen))

        found = balance(
            build, range(team.size), granules=granules, rounds=rounds, budget=budget, restarts=restarts
        )  # fmt: skip
        return KernelBalance(kind, team.names, found, _again(build, found, rounds))


def _again(
    build: Callable[[Sequence[int], Sequence[float]], _Trial], found: Balanced, rounds: int
) -> tuple[float, float]:
    """Return the seconds of the fastest device alone and of the best split: medians of rounds in turn."""
    fastest = found.alone.index(min(found.alone))
    programs = [build((fastest,), (1.0,)), build(found.devices, found.shares)]
    try:
        for program in programs:
            program.measure()
        table = [[program.measure().seconds for program in programs] for _ in range(rounds)]
    finally:
        for program in programs:
            program.close()
    alone, split = np.median(table, axis=0)
    return float(alone), float(split)


def _granule(rows: int, granules: Sequence[int]) -> int:
    return _GRANULE if rows >= _GRANULE * max(granules, default=1) else 1


# ----------------------------------------------------------------------------------- what is measured


class _Trial:
    """A kernel on the devices that have rows."""

    def __init__(self, steps: Steps, devices: int) -> None:
        self._steps: Steps | None = steps
        self._calls = 0
        if steps[0].size != devices:
            raise FluxloomError(f"only {steps[0].size} of {devices} devices would have rows")

    def measure(self) -> Measured:
        """Return the time of a call, all devices at once, and for how long each of them was busy."""
        assert self._steps is not None
        ranks, steps, reset, kernels, most = self._steps

        def run(rank: int, calls: int) -> None:
            """Call the kernel of a rank."""
            for _ in range(calls):
                steps[rank]()

        if not self._calls:
            reset()
            self._calls = ranks.calls_of(run, _SECONDS, min(_MOST, most))
        found = ranks.measure(run, self._calls, reset)
        return Measured(found.seconds / kernels, tuple(busy / kernels for busy in found.busy))

    def close(self) -> None:
        """Let go of the matrix, and of its memory on the devices, before the next one is made."""
        self._steps = None
        gc.collect()


def _spmv(work: _Work, shares: Sequence[float]) -> Steps:
    """Two products, there and back: each needs values at the cuts that the one before has changed."""
    made = work.matrix(shares)
    x, y = made.vector(name="x"), made.vector(name="y")

    def chain(rank: int) -> Chain:
        matrix, first, second = made.parts[rank].matrix, x.parts[rank], y.parts[rank]
        return Chain([matrix.product(first, second), matrix.product(second, first)], name="products")

    growth = 2.0 * log10(max(work.rows.bound, 1.1))
    return made.ranks, made.ranks.run(chain), partial(x.write, 1.0), 2, max(1, int(_LARGEST / growth))


def _vectors(work: _Work, shares: Sequence[float]) -> tuple[DeviceRanks, list[tuple[Any, Any]], Step]:
    """Return two vectors on each device, without a matrix, and what sets the second."""
    counts = np.diff(row_bounds(work.rows.size, shares, work.granule))
    ranks = DeviceRanks(work.team, np.flatnonzero(counts).tolist())

    def make(rank: int) -> tuple[Any, Any]:
        context, owned = ranks.contexts[rank], int(counts[ranks.members[rank]])
        rows = local_set(context, owned, "rows")
        return context.dat(rows, np.ones(owned), "x"), context.dat(rows, np.ones(owned), "y")

    made = ranks.run(make)
    return ranks, made, lambda: ranks.run(lambda rank: made[rank][1].write(1.0))


def _axpy(work: _Work, shares: Sequence[float]) -> Steps:
    ranks, made, reset = _vectors(work, shares)
    chains: list[Step] = ranks.run(lambda rank: Chain([Loop(axpy, made[rank][0].set, *made[rank], a=0.5)], name="axpy"))
    return ranks, chains, reset, 1, _MOST


def _dot(work: _Work, shares: Sequence[float]) -> Steps:
    ranks, made, reset = _vectors(work, shares)

    def make(rank: int) -> Step:
        total = ranks.contexts[rank].scalar(0.0, "total")
        loop = Loop(dot, made[rank][0].set, *made[rank], total, systems=1)
        chain = Chain([Reset(total), loop], name="dot")

        def step() -> object:
            chain()
            return total.value

        return step

    return ranks, ranks.run(make), reset, 1, _MOST


def _cg(work: _Work, shares: Sequence[float]) -> Steps:
    made = work.matrix(shares)
    b, x = made.vector(np.ones(work.rows.size), "b"), made.vector()
    solver = made.solver(b, x, ConjugateGradient, preconditioner=Jacobi())

    def reset() -> None:
        x.write(0.0)
        made.run(lambda part: solver.parts[part.rank].start())

    return made.ranks, [part.body for part in solver.parts], reset, solver.parts[0].interval, _MOST


_PROGRAMS: dict[Kind, Callable[[_Work, Sequence[float]], Steps]] = {
    "spmv": _spmv, "axpy": _axpy, "dot": _dot, "cg": _cg,
}  # fmt: skip
