"""Kernels on vectors: what Krylov methods do between products, as few passes over memory as possible.

A vector has one or several components an element (``systems``): several systems with one matrix are solved at once,
each with scalars of its own. A system that has converged stands still, its steps have length zero.
"""

from __future__ import annotations

import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import select

__all__ = ["clear", "copy", "dot", "like", "marked", "ratio", "shifted", "step_length", "total"]


def like(given: Dat, name: str, over: Set | None = None, dtype: npt.DTypeLike | None = None) -> Dat:
    """Return a vector of zeros like another, maybe on another set, or of another type."""
    where = given.set if over is None else over
    kind = given.scalar.numpy if dtype is None else dtype
    return Dat(where, name=name, shape=given.shape, dtype=kind, layout=given.layout)


@func
def ratio(a, b):
    """``a / b``, and 0 for ``b = 0``: an iteration that is over stands still."""
    return select(b != 0.0, a / select(b != 0.0, b, 1.0), 0.0)


@func
def step_length(top, bottom, rr, bb, rtol2, atol2):
    """``top / bottom``, and 0 for a system that has converged, ``rr <= max(rtol^2 bb, atol^2)``, or breaks down."""
    live = rr > max(rtol2 * bb, atol2)
    return select(live, ratio(top, bottom), 0.0)


@func
def marked(square, step, rr, bb, rtol2, atol2):
    """``+- square``, minus where ``rr < 0``, or ``rr > max(rtol^2 bb, atol^2)`` and ``step = 0``.

    A live system is stuck. ``square`` is a part of ``r . r``, and has the minus sign ever after.

    So a residual tells of a breakdown: neither an equal residual nor one that stands still for long does.
    """
    stuck = rr < 0.0 or (rr > max(rtol2 * bb, atol2) and step == 0.0)
    return select(stuck, -square, square)


@kernel
def dot(x: Read, y: Read, result: Inc, *, systems: Const[int]):
    """``result += x . y``."""
    for k in range(systems):
        result[k] += x[k] * y[k]


@kernel
def total(x: Read, result: Inc, *, systems: Const[int]):
    """``result += sum x``."""
    for k in range(systems):
        result[k] += x[k]


@kernel
def clear(x: Write):
    """``x = 0``."""
    for k in range(len(x)):
        x[k] = 0.0


@kernel
def copy(x: Read, y: Write, *, systems: Const[int]):
    """``y = x``."""
    for k in range(systems):
        y[k] = x[k]


@kernel
def shifted(result: Read, x: RW, *, scale: float, systems: Const[int]):
    """``x = x - scale result``: with the sum of ``x`` and one over the number of elements, a mean of zero."""
    for k in range(systems):
        x[k] = x[k] - scale * result[k]
