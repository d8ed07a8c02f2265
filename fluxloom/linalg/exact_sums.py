"""Sums over all ranks in steps whose bits may not depend on the ranks: those of ``deterministic="global"``.

A loop that adds to a global adds in the order in which it runs, and the ranks' parts follow each other. Here it adds to
values of the elements instead, whose sum is formed exactly by the host and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fluxloom.comm.exact_sums import exact_total
from fluxloom.core.access import Access
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.direct.calls import HostStep
from fluxloom.linalg.operators import Step
from fluxloom.linalg.vectors import clear

__all__ = ["exactly", "with_exact_sums"]


def with_exact_sums(steps: Sequence[Step]) -> list[Step]:
    """Return the same steps; in a context with ``deterministic="global"`` with sums that do not depend on the ranks."""
    out: list[Step] = []
    for step in steps:
        sums = _sums(step) if step.context.schedule.deterministic == "global" else []
        out += _exact(step, sums) if isinstance(step, Loop) and sums else [step]
    return out


def exactly(loop: Loop) -> Callable[..., None]:
    """Return what is called as a loop is, constants and all, with the sums of `with_exact_sums`."""
    steps = with_exact_sums([loop])
    if len(steps) == 1:
        return loop

    def run(**constants: float) -> None:
        for step in steps:
            if constants and isinstance(step, Loop) and constants.keys() <= step.constants.keys():
                step(**constants)
            else:
                step()

    return run


def _sums(step: Step) -> list[Global]:
    """Return the globals of reals to which a loop adds."""
    if not isinstance(step, Loop):
        return []
    sums = [a.data for a in step.bound.arguments if a.access is Access.INC]
    return [data for data in sums if isinstance(data, Global) and data.scalar.floating]


def _exact(loop: Loop, sums: Sequence[Global]) -> list[Step]:
    """Return a loop that adds to values of its elements, between what clears these and what adds them."""
    context, bound = loop.context, loop.bound
    over = loop.over.parent if isinstance(loop.over, Subset) else loop.over
    terms = {
        id(target): Dat(over, name=f"{loop.name}.{target.name}", shape=target.shape, dtype=bound.compute.numpy)
        for target in sums
    }
    arguments: list[Argument | Dat | Global] = [
        terms.get(id(a.data), a) if isinstance(a.data, Global) else a for a in bound.arguments
    ]
    constants = bound.declared(loop.constants)

    def add() -> None:
        for target in sums:
            target.value = np.asarray(target.value) + exact_total(context.comm, terms[id(target)].read())

    return [
        *(Loop(clear, over, dat) for dat in terms.values()),
        Loop(bound.kernel, loop.over, *arguments, name=loop.name, **constants),
        HostStep(context, add, f"{loop.name}.sums"),
    ]
