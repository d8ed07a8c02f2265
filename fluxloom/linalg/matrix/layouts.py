"""Which layout makes products of a matrix fastest on a device: measured, on the matrix itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.core.registry import Registry
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.ragged import CSR, ELL, RaggedLayout
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.pairs import why_single
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.perf.stopwatch import Stopwatch

__all__ = ["LayoutTrial", "fastest_layouts", "layouts_of", "product_schedules"]

_MOST_PADDING = 2.0


@dataclass(frozen=True)
class LayoutTrial:
    """A layout with a schedule, and what a product took.

    Attributes
    ----------
    layout, schedule
        For `SparseMatrix.from_scipy` and `SparseMatrix.product`.
    seconds
        Median time of a product.
    padding
        Places of storage for each entry.
    """

    layout: RaggedLayout
    schedule: Schedule
    seconds: float
    padding: float


def layouts_of(context: Context) -> tuple[RaggedLayout, ...]:
    """Return the layouts that are worth a try on a device, the usual one first.

    Those of other packages come last: an entry point of the group ``fluxloom.matrix_formats`` names a class, or a
    function, that returns a `RaggedLayout` when it is called.
    """
    group = "fluxloom.matrix_formats"
    others: Registry[Callable[[], RaggedLayout]] = Registry("matrix format", group=group, error=SolverError)
    return (CSR(), context.row_layout(), ELL(), *(others[name]() for name in others.names()))


def product_schedules(matrix: SparseMatrix) -> tuple[Schedule, ...]:
    """Return the schedules of a product that are worth a try: two rows an item and one, what is chosen by itself first.

    Everything else that a schedule can change is for `fluxloom.tune`, once the layout is known.
    """
    product = matrix.product(Dat(matrix.columns), Dat(matrix.rows))
    if why_single(product.bound, None):
        return (Schedule(),)
    return Schedule(), Schedule(pairs=not product.schedule.pairs)


def fastest_layouts(
    context: Context, matrix: Any, *, layouts: Sequence[RaggedLayout] | None = None, rounds: int = 5
) -> list[LayoutTrial]:
    """Measure the product of a matrix in several layouts, rounds in turn, and return them, the fastest first.

    Parameters
    ----------
    matrix
        A sparse array or matrix of SciPy.
    layouts
        Which to try; by default those of `layouts_of`. Layouts with two places an entry and more are left out unless
        there is no other.
    rounds
        Timed rounds of each.

    Raises
    ------
    SolverError
        If there is no layout to try, or the device runs kernels as Python.

    Examples
    --------
    >>> best = fastest_layouts(ctx, matrix)[0]  # doctest: +SKIP
    >>> A = SparseMatrix.from_scipy(ctx, matrix, layout=best.layout)  # doctest: +SKIP
    >>> product = A.product(x, y, best.schedule)  # doctest: +SKIP
    """
    wanted = layouts_of(context) if layouts is None else tuple(layouts)
    if not wanted:
        raise SolverError("fastest_layouts: no layouts to try; leave them out for the usual ones")
    if not context.device.native:
        raise SolverError(
            f"fastest_layouts: the device {context.device.name!r} runs kernels as Python: nothing to time"
        )
    stored = [SparseMatrix.from_scipy(context, matrix, layout=layout) for layout in wanted]
    tight = [ours for ours in stored if ours.padding < _MOST_PADDING]
    tried = [(ours, schedule) for ours in tight or stored[:1] for schedule in product_schedules(ours)]
    values = np.random.default_rng(0).random(stored[0].columns.size)
    runs = []
    for ours, schedule in tried:
        x, y = context.dat(ours.columns, values, "x"), context.dat(ours.rows, name="y")
        runs.append(ours.product(x, y, schedule))
    seconds = Stopwatch(rounds, wait=context.device.synchronize).race(runs)
    found = [
        LayoutTrial(ours.layout, schedule, time, ours.padding)
        for (ours, schedule), time in zip(tried, seconds, strict=True)
    ]
    return sorted(found, key=lambda trial: trial.seconds)
