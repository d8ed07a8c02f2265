"""Three kernels, and nothing else: product with a sparse matrix, sum of two vectors, scalar product.

- *SpMV*: ``y = A x``, with a vector beside it ``y = A x + s y`` or ``y = z + A x``
- *AXPY*: ``y = a x + b y``, or the same sum in a third vector
- *DOT*: ``x . y``

A program that does all its work with them, and counts them, runs wherever the three do, and its time is theirs
times their numbers. Coefficients are quotients of globals, so that no number has to come
to the host between a DOT and the AXPY that needs it.

Sources: G. Oyarzun, R. Borrell, A. Gorobets, A. Oliva: *Portable implementation model for CFD simulations. Application
to hybrid CPU/GPU supercomputers*. Int. J. Comput. Fluid Dyn. 31, 2017. The products with ``s y`` are those of BLAS.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from fluxloom.core.access import RW, Read, Write
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.products import add_row, spmv
from fluxloom.linalg.vectors import dot, ratio

__all__ = ["Algebra", "KernelCalls", "axpy", "axpy_apart", "kind_of", "spmv_from", "spmv_onto"]


@kernel
def spmv_onto(a: Read, x: Read, scale: Read, y: RW):
    """One row of ``y = A x + s y``."""
    y[0] = add_row(a, x, scale[0] * y[0])


@kernel
def spmv_from(a: Read, x: Read, start: Read, y: Write):
    """One row of ``y = z + A x``."""
    y[0] = add_row(a, x, start[0])


@kernel
def axpy(x: Read, a: Read, a_over: Read, b: Read, b_over: Read, y: RW, *, sign: float):
    """``y = a x + b y`` with ``a = sign a / a_over`` and ``b = b / b_over``; a quotient by zero is zero."""
    y[0] = sign * ratio(a[0], a_over[0]) * x[0] + ratio(b[0], b_over[0]) * y[0]


@kernel
def axpy_apart(x: Read, y: Read, a: Read, b: Read, z: Write):
    """``z = a x + b y``."""
    z[0] = a[0] * x[0] + b[0] * y[0]


@dataclass(frozen=True)
class KernelCalls:
    """How often each kind of kernel ran, or runs in one call of something.

    Attributes
    ----------
    spmv, axpy, dot
        The three kernels.
    extra
        Passes of pointwise functions that none of them can express.
    """

    spmv: int = 0
    axpy: int = 0
    dot: int = 0
    extra: int = 0

    @classmethod
    def of(cls, steps: Iterable[Loop | Reset]) -> KernelCalls:
        """Return the kinds of some loops, by the kernel that each of them runs."""
        found = [kind_of(step) for step in steps if isinstance(step, Loop)]
        return cls(**{field.name: found.count(field.name) for field in fields(cls)})

    def __add__(self, other: KernelCalls) -> KernelCalls:
        return KernelCalls(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, times: int) -> KernelCalls:
        return KernelCalls(*(getattr(self, f.name) * times for f in fields(self)))

    __rmul__ = __mul__


def kind_of(loop: Loop) -> str:
    """Return ``"spmv"``, ``"axpy"``, ``"dot"``, or ``"extra"`` for any other kernel."""
    kinds = {spmv: "spmv", spmv_onto: "spmv", spmv_from: "spmv", axpy: "axpy", axpy_apart: "axpy", dot: "dot"}
    return kinds.get(loop.bound.kernel, "extra")


class Algebra:
    """Makes loops of the three kernels.

    Parameters
    ----------
    context
        Where they run.

    Attributes
    ----------
    one, minus, nothing
        The globals 1, -1 and 0.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.one, self.minus, self.nothing = (
            context.scalar(value, name) for value, name in ((1.0, "one"), (-1.0, "minus"), (0.0, "nothing"))
        )

    def spmv(self, matrix: SparseMatrix, x: Dat, y: Dat) -> Loop:
        """Return the loop ``y = A x``."""
        return matrix.product(x, y)

    def spmv_onto(self, matrix: SparseMatrix, x: Dat, y: Dat, scale: Global | None = None) -> Loop:
        """Return the loop ``y = A x + s y``, by default with ``s = 1``."""
        scale = scale if scale is not None else self.one
        return matrix.row_loop((spmv_onto, spmv_onto), x, scale, y, name=f"{matrix.pattern.name}.onto")

    def spmv_from(self, matrix: SparseMatrix, x: Dat, start: Dat, y: Dat) -> Loop:
        """Return the loop ``y = z + A x``."""
        return matrix.row_loop((spmv_from, spmv_from), x, start, y, name=f"{matrix.pattern.name}.from")

    def axpy(
        self, a: Global, x: Dat, y: Dat, b: Global | None = None, *,
        a_over: Global | None = None, b_over: Global | None = None, sign: float = 1.0,
    ) -> Loop:  # fmt: skip
        """Return the loop ``y = a x + b y``, by default with ``b = 1``; see the kernel for the quotients."""
        one = self.one
        return Loop(
            axpy, y.set, x, a, a_over if a_over is not None else one, b if b is not None else one,
            b_over if b_over is not None else one, y, sign=sign, name=f"{y.name}.axpy",
        )  # fmt: skip

    def axpy_apart(self, a: Global, x: Dat, b: Global, y: Dat, z: Dat) -> Loop:
        """Return the loop ``z = a x + b y``."""
        return Loop(axpy_apart, z.set, x, y, a, b, z, name=f"{z.name}.axpy")

    def dot(self, x: Dat, y: Dat, result: Global) -> list[Loop | Reset]:
        """Return the steps ``result = x . y``, a sum over all ranks."""
        return [Reset(result), Loop(dot, x.set, x, y, result, systems=1, name=f"{x.name}.dot")]
