"""The kernels of a step, each alone at the size it has in the step, and what the model makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from fluxloom.app.bench.exchange_cost import measure_exchanges
from fluxloom.app.bench.rounds import slowest
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.identity import unique
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.maps import EntriesMap
from fluxloom.dsl.steps import Reset
from fluxloom.linalg.three_kernels import kind_of
from fluxloom.perf.les_model import KernelTimes, Part
from fluxloom.solvers.algebraic_step import AlgebraicStep

__all__ = ["Kernels", "measure_kernels", "seconds_of_call", "step_flops"]

_ROUNDS, _ROUND_SECONDS, _MOST_CALLS = 9, 0.03, 200


@dataclass
class _Group:
    """Loops of a step that do the same to arrays of the same sizes."""

    loops: list[Loop | Reset] = field(default_factory=list)
    calls: float = 0.0
    distinct: int = 0


@dataclass(frozen=True)
class Kernels:
    """What was measured.

    Attributes
    ----------
    times
        Of the product with the Laplacian (its exchange included), of a sum and a scalar product of its vectors.
    parts
        The kernels of a step, each with its own time, without exchanges.
    exchanges
        Seconds of the exchanges of a step, if nothing hides them; 0 on a rank alone.
    """

    times: KernelTimes
    parts: tuple[Part, ...]
    exchanges: float


def measure_kernels(step: AlgebraicStep) -> Kernels:
    """Measure the kernels of a step that has run; the state is put back afterwards. Collective.

    Loops of a kind are run in turn, so that the caches do not hold what they do not hold in the step either.
    """
    arguments = [argument for loop, _ in _loops(step) for argument in loop.bound.arguments]
    kept = [(dat, dat.read().copy()) for dat in unique(a.data for a in arguments) if isinstance(dat, Dat)]
    found = _measured(step)
    for dat, values in kept:
        dat.write(values)
    return found


def _measured(step: AlgebraicStep) -> Kernels:
    context, groups = step.context, _groups(step)
    axpy = f"axpy {step.flow.cells.name}"
    found: dict[str, Part] = {}
    for name, group in groups.items():
        seconds = seconds_of_call(context, Chain(group.loops, fuse=False, name=name)) / group.distinct
        nbytes = float(np.mean([loop.useful_bytes for loop in group.loops if isinstance(loop, Loop)]))
        nbytes = float(context.comm.reduce(np.array([nbytes]), "sum")[0])
        kind = next(kind_of(loop) for loop in group.loops if isinstance(loop, Loop))
        found[name] = Part(name, kind, group.calls, seconds, nbytes)
    if context.ranked:
        dot = f"dot {step.flow.cells.name}"
        found[dot] = replace(found[dot], seconds=max(0.0, _dot_and_axpy(step) - found[axpy].seconds))
    product = "poisson.product"
    times = KernelTimes(
        _product(step) if context.ranked else found[product].seconds, found[axpy].seconds,
        found[f"dot {step.flow.cells.name}"].seconds,
    )  # fmt: skip
    return Kernels(times, tuple(found.values()), _exchanges(step) if context.ranked else 0.0)


def seconds_of_call(context: Context, run: Callable[[], object]) -> float:
    """Return the seconds of a call on the slowest rank, in the best of some rounds. Collective."""

    def seconds(calls: int) -> float:
        context.synchronize()
        context.comm.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        context.synchronize()
        return slowest(context.comm, time.perf_counter() - start) / calls

    seconds(2)
    calls = max(1, min(_MOST_CALLS, ceil(_ROUND_SECONDS / max(seconds(2), 1e-9))))
    return min(seconds(calls) for _ in range(_ROUNDS))


def step_flops(step: AlgebraicStep) -> float:
    """Return the additions and multiplications of the three kernels in a step, of all ranks. Collective."""
    count = 0.0
    for loop, calls in _loops(step):
        kind, over = kind_of(loop), loop.over.size
        if kind == "spmv":
            entries = loop.bound.arguments[0].map
            assert isinstance(entries, EntriesMap)
            count += 2.0 * calls * entries.target.size
        elif kind == "axpy":
            count += 3.0 * calls * over
        elif kind == "dot":
            count += 2.0 * calls * over
    return float(step.context.comm.reduce(np.array([count]), "sum")[0])


def _loops(step: AlgebraicStep) -> Iterator[tuple[Loop, float]]:
    """Yield the loops of a step, and how often each runs in it."""
    solver = step.solver
    chains = [(chain, 1.0) for part in step.plan for chain in part.chains]
    chains += [(solver.start, 1.0), (solver.body, solver.made / solver.interval)]
    for chain, calls in chains:
        for loop in chain.loops:
            yield loop, calls


def _groups(step: AlgebraicStep) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    met: set[tuple[str, tuple[int, ...]]] = set()
    for loop, calls in _loops(step):
        kind = kind_of(loop)
        name = loop.name if kind in ("spmv", "extra") else f"{kind} {loop.over.name}"
        group = groups.setdefault(name, _Group())
        group.calls += calls
        key = (name, tuple(id(argument.data) for argument in loop.bound.arguments))
        if key in met:
            continue
        met.add(key)
        sums = [Reset(a.data) for a in loop.bound.arguments[2:3] if kind == "dot"]  # type: ignore[arg-type]
        group.loops += [*sums, loop]
        group.distinct += 1
    return groups


def _dot_and_axpy(step: AlgebraicStep) -> float:
    """Return the seconds of a scalar product and of a sum that takes it: only then do the ranks form it."""
    make, solver = step.algebra, step.solver
    steps: Sequence[Loop | Reset] = [
        *make.dot(solver.p, solver.q, solver.pq), make.axpy(solver.pq, solver.z, solver.p, make.one),
        *make.dot(solver.r, solver.z, solver.bb), make.axpy(solver.bb, solver.q, solver.r, make.one),
    ]  # fmt: skip
    return seconds_of_call(step.context, Chain(steps, fuse=False, name="dots")) / 2


def _product(step: AlgebraicStep) -> float:
    """Return the seconds of a product with the Laplacian and of the exchange that it needs."""
    make, solver = step.algebra, step.solver
    there_and_back = [make.spmv(solver.matrix, solver.p, solver.q), make.spmv(solver.matrix, solver.q, solver.p)]
    return seconds_of_call(step.context, Chain(there_and_back, fuse=False, name="products")) / 2


def _exchanges(step: AlgebraicStep) -> float:
    """Return the seconds of the exchanges of a step, one after the other."""
    solver, found = step.solver, 0.0
    chains = [(chain, 1.0) for part in step.plan for chain in part.chains]
    for chain, calls in [*chains, (solver.start, 1.0), (solver.body, solver.made / solver.interval)]:
        cost = measure_exchanges(chain)
        found += calls * cost.alone if cost is not None else 0.0
    return found
