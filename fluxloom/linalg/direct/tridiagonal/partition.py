"""Lines that stay on chip: every work item eliminates a chunk of rows, the ends of the chunks are solved together.

A group of work items holds some lines. An item has ``K`` rows of one of them in registers. With ``x_p`` the last
unknown of the chunk before, Thomas's elimination with fill-in gives for all rows of the chunk but the last one::

    p_i = b_i - a_i c'_{i-1},  c'_i = c_i / p_i,  l_i = -a_i l_{i-1} / p_i,  d_i = (y_i - a_i d_{i-1}) / p_i
    l_i x_p + x_i + c'_i x_{i+1} = d_i            (c'_{-1} = d_{-1} = 0, l_{-1} = -1)

Going back through the chunk without keeping anything, the first unknown becomes ``x_0 = D - L x_p - M x_last``. Put
into the last row of the chunk before, that leaves a tridiagonal system of the last unknowns of the ``T`` chunks, which
parallel cyclic reduction solves, one row an item; then ``x_i = d_i - l_i x_p - c'_i x_{i+1}``. Every value of ``y`` is
read once and every one of ``x`` is written once.

The number of chunks is a power of two and the reduction wraps around: row ``t`` is coupled to the rows ``t - k`` and
``t + k`` modulo ``T``. With ``k = T / 2`` both are one row, and two unknowns are left with two equations. This is the
periodic case; where lines have ends, the first and the last coupling are zero and stay so: from row ``t < k`` the
elimination takes ``-a_t / b_{t-k} = 0`` times row ``t - k``, and from row ``k <= t < 2 k`` the new coupling is
``-a_t / b_{t-k}`` times ``a_{t-k}``, which is zero as ``t - k < k``. Chunks are of equal length, or one row less: then
the first row repeats the last one of the chunk before (``x_0 = x_p``), so that the chain has no gap.

The pivots are those of each chunk alone: they do not vanish in matrices that are diagonally dominant or definite. One
that does is told by what it leaves, no number in the last rows of chunks; so is a value of ``y`` that is no number.

Source: E. Laszlo, M. Giles, J. Appleyard, "Manycore algorithms for batch scalar and block tridiagonal solvers", ACM
Trans. Math. Softw. 42 (2016) 31, sections 3.2 and 4 (we keep one row a chunk, not two); H. H. Wang, "A parallel method
for tridiagonal equations", ACM Trans. Math. Softw. 7 (1981) 170, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import LOCAL_BYTES, Body, code
from fluxloom.linalg.direct.tridiagonal.partition_shape import Shape, shapes
from fluxloom.linalg.direct.tridiagonal.partition_text import shared_words, statements

__all__ = ["Partition"]

_GROUP, _REGISTERS = 256, 128
"""Work items of a group, and registers of an item, with which two groups fit on a multiprocessor."""


@dataclass(frozen=True)
class Partition:
    """Chunks in registers, their ends by parallel cyclic reduction: the lines stay on chip.

    Attributes
    ----------
    chunk
        Rows of an item at most; 0: chosen.
    lanes
        Lines of a group, a power of two; 0: chosen.
    registers
        Registers that an item may have; 0: the compiler chooses.
    """

    chunk: int = 0
    lanes: int = 0
    registers: int = 0
    name: str = "partition"

    def shape(self, form: Form, lines: Lines) -> Shape | None:
        """Return how a group is laid over lines; None where they do not fit."""
        for shape in shapes(form, lines, self.chunk, self.lanes):
            if self._bytes(form, lines, shape) <= LOCAL_BYTES:
                return shape
        return None

    def body(self, form: Form, lines: Lines) -> Body:
        """Return the kernel without its parameters."""
        shape = self.shape(form, lines)
        assert shape is not None, self.refuses(form, lines)
        shared = f"    FL_SHARED REAL box[{shared_words(form, lines, shape)}];\n"
        if shape.staged:
            names = ("base_y", "base_x", "base_c")[: 3 if form.coefficients == "each" else 2]
            shared += "".join(f"    FL_SHARED int64_t {name}[{shape.lanes + 1}];\n" for name in names)
        groups = -(-lines.systems // shape.lanes)
        held = shape.chunk * (3 + form.rhs) * form.size // 4
        registers = self.registers or (_REGISTERS if shape.block == _GROUP and held <= _REGISTERS * 5 // 8 else 0)
        return Body("fl_partition", shared, statements(form, lines, shape), shape.block, groups, registers)

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the kernel; nothing leaves the chip."""
        return code(form, self.body(form, lines))

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return why lines do not fit on a chip, or an empty string."""
        if self.shape(form, lines) is not None:
            return ""
        return (
            f"lines of {lines.rows} rows of {form.real} do not fit into the registers of one group of work items with "
            'method "partition": choose "chunks", or "thomas" where there are many systems'
        )

    @staticmethod
    def _bytes(form: Form, lines: Lines, shape: Shape) -> int:
        return shared_words(form, lines, shape) * form.size + (24 * (shape.lanes + 1) if shape.staged else 0)
