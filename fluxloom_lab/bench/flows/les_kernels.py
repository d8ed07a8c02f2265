"""The kernels of a step at the size they have in it, and what the model makes of them.

A kernel that runs again and again finds in the caches what a step evicts between two calls of it. So where the clock of
each loop costs nothing, kernels are timed in the rotation of a step, one after another in its order, and a call takes
its mean over the best round. Elsewhere, on GPUs and with several ranks, those of a kind run in turn, in a chain of
their own; the three kernels of the model are timed so everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from fluxloom.cli.runs.summary import difference
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import EntriesMap, RaggedMap
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import moved
from fluxloom.linalg.krylov.three_kernels import kind_of
from fluxloom.solvers.algebraic.step import AlgebraicStep
from fluxloom_lab.bench.exchange_cost import measure_exchanges
from fluxloom_lab.bench.flows.les_model import KernelTimes, Part
from fluxloom_lab.bench.rounds import race, summed

__all__ = ["PRODUCT", "Kernels", "measure_kernels", "seconds_of_call", "solver_bytes", "step_flops"]

PRODUCT = "poisson.product"
"""The product with the Laplacian."""

_ROTATIONS, _TURNS = 6, 2
_ROUNDS, _ROUND_SECONDS = 9, 0.03


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
    alone
        As ``times``, each kernel in a chain of its own.
    rotated
        Whether ``times`` and ``parts`` are from the rotation of a step; else they are those of kernels alone.
    solving
        Names of the parts that the pressure solver runs in each iteration.
    """

    times: KernelTimes
    parts: tuple[Part, ...]
    exchanges: float
    alone: KernelTimes
    rotated: bool
    solving: frozenset[str]


def measure_kernels(step: AlgebraicStep) -> Kernels:
    """Measure the kernels of a step that has run; the state is put back afterwards. Collective."""
    arguments = [argument for loop, _ in _loops(step) for argument in loop.bound.arguments]
    kept = [(dat, dat.read().copy()) for dat in unique(a.data for a in arguments) if isinstance(dat, Dat)]
    found = _measured(step)
    for dat, values in kept:
        dat.write(values)
    return found


def _measured(step: AlgebraicStep) -> Kernels:
    context, alone = step.context, _alone(step)
    axpy, dot = f"axpy {step.flow.cells.name}", f"dot {step.flow.cells.name}"
    if context.distributed:
        alone[dot] = replace(alone[dot], seconds=max(0.0, _dot_and_axpy(step) - alone[axpy].seconds))
    product = _product(step) if context.distributed else alone[PRODUCT].seconds
    times = measured = KernelTimes(product, alone[axpy].seconds, alone[dot].seconds)
    rotated = context.device.native and not context.device.items and not context.distributed
    parts = alone
    if rotated:
        seconds = _in_rotation(step)
        parts = {name: replace(part, seconds=seconds[name]) for name, part in alone.items()}
        measured = KernelTimes(seconds[PRODUCT], seconds[axpy], seconds[dot])
    return Kernels(
        measured, tuple(parts.values()), _exchanges(step) if context.distributed else 0.0, times, rotated,
        frozenset(_group_of(loop) for loop in step.solver.body.loops),
    )  # fmt: skip


def _alone(step: AlgebraicStep) -> dict[str, Part]:
    """Return the kernels by name, those of a kind in turn in a chain of their own."""
    context, found = step.context, dict[str, Part]()
    for name, group in _groups(step).items():
        seconds = seconds_of_call(context, Chain(group.loops, fuse=False, name=name)) / group.distinct
        loops = [loop for loop in group.loops if isinstance(loop, Loop)]
        each = [moved((loop.bound,)) for loop in loops]
        mean = np.mean([(part.total, part.total - part.written) for part in each], axis=0)
        nbytes, read = (float(value) for value in context.comm.reduce(mean, "sum"))
        found[name] = Part(name, kind_of(loops[0]), group.calls, seconds, nbytes, read)
    return found


def _in_rotation(step: AlgebraicStep) -> dict[str, float]:
    """Return the mean seconds of a call of each kind of kernel in the best of some rounds, of two rotations each."""
    rotation = _rotation(step) * _TURNS
    _spent(rotation)
    best: dict[str, tuple[int, float]] = {}
    for _ in range(_ROTATIONS):
        found = _spent(rotation)
        if not best or sum(s for _, s in found.values()) < sum(s for _, s in best.values()):
            best = found
    return {name: seconds / calls for name, (calls, seconds) in best.items()}


def _rotation(step: AlgebraicStep) -> list[Chain]:
    """Return the chains of a step in its order, those of the pressure solver where it runs."""
    solver, found = step.solver, list[Chain]()
    for part in step.plan:
        found += part.chains
        if part.name == "pressure source":
            found += [solver.start, *[solver.body] * ceil(solver.made / solver.interval)]
    return found


def _spent(rotation: Sequence[Chain]) -> dict[str, tuple[int, float]]:
    """Run a rotation; return calls and seconds of each kind of kernel in it; fused loops share their time alike."""
    chains = unique(rotation)
    kinds = [{loop.name: _group_of(loop) for loop in chain.loops} for chain in chains]
    before = [chain.reports() for chain in chains]
    for chain in rotation:
        chain()
    found: dict[str, tuple[int, float]] = {}
    for chain, names, old in zip(chains, kinds, before, strict=True):
        for row in difference(chain.reports(), old):
            members = row.name.split("+")
            for name in (names[member] for member in members if row.calls):
                calls, seconds = found.get(name, (0, 0.0))
                found[name] = calls + row.calls, seconds + row.seconds / len(members)
    return found


def solver_bytes(step: AlgebraicStep) -> int:
    """Return the bytes that the pressure solver passes over in an iteration: its matrices and vectors, each once."""
    arguments = [argument for loop in step.solver.body.loops for argument in loop.bound.arguments]
    dats = unique(a.data for a in arguments if isinstance(a.data, Dat))
    maps = unique(a.map for a in arguments if isinstance(a.map, RaggedMap))
    return sum(dat.nbytes for dat in dats) + sum(m.indices.nbytes + m.offsets.nbytes for m in maps)


def seconds_of_call(context: Context, run: Callable[[], object]) -> float:
    """Return the seconds of a call on the slowest rank, in the best of some rounds. Collective."""
    return race(context, [run], _ROUNDS, _ROUND_SECONDS)[0]


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
    return summed(step.context.comm, count)


def _loops(step: AlgebraicStep) -> Iterator[tuple[Loop, float]]:
    """Yield the loops of a step, and how often each runs in it."""
    solver = step.solver
    chains = [(chain, 1.0) for part in step.plan for chain in part.chains]
    chains += [(solver.start, 1.0), (solver.body, solver.made / solver.interval)]
    for chain, calls in chains:
        for loop in chain.loops:
            yield loop, calls


def _group_of(loop: Loop) -> str:
    """Return the name of the loops that do the same to arrays of the same sizes."""
    kind = kind_of(loop)
    return loop.name if kind in ("spmv", "extra") else f"{kind} {loop.over.name}"


def _groups(step: AlgebraicStep) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    met: set[tuple[str, tuple[int, ...]]] = set()
    for loop, calls in _loops(step):
        kind, name = kind_of(loop), _group_of(loop)
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
