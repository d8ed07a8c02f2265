"""Lines of any length: every part of a line is condensed to two rows, they are solved, and the rest is put back.

A line of ``n`` rows has ``P`` parts of up to ``K`` rows, which work items hold in registers. One pass reads all values
and leaves two rows a part, `fluxloom.linalg.tridiagonal.chunks_text.condense`; the system of ``2 P`` rows is solved by
`Partition`, or is divided again; a second pass reads the values again and writes the unknowns. With matrices of their
own, systems move ``9 + 10 * 2 / K`` words a row.

Source: H. H. Wang, "A parallel method for tridiagonal equations", ACM Trans. Math. Softw. 7 (1981) 170; L.-W. Chang,
J. A. Stratton, H.-S. Kim, W. W. Hwu, "A scalable, numerically stable, high-performance tridiagonal solver using GPUs",
SC (2012) 27, section 3 (dividing lines over groups).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fluxloom.linalg.tridiagonal.chunks_text import Parts, condense, substitute
from fluxloom.linalg.tridiagonal.form import Code, Form, Lines
from fluxloom.linalg.tridiagonal.kernels_text import Body, code
from fluxloom.linalg.tridiagonal.partition import Partition

__all__ = ["Chunks"]

_REGISTERS, _REGISTERS_STAGED = 128, 64
"""Registers of 4 bytes that the values of a part may fill; fewer where they change places in memory of the group."""


@dataclass(frozen=True)
class Chunks:
    """Parts of lines condensed to two rows each, as often as it takes until `Partition` can solve them.

    Attributes
    ----------
    chunk
        Rows of a part at most, at least 4; 0: chosen.
    """

    chunk: int = 0
    name: str = "chunks"

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the kernels: the first level condenses, the last puts back."""
        bodies, words = self._level(form, lines)
        return code(form, *bodies, words=words)

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return why lines cannot be divided, or an empty string."""
        if lines.rows < 4:
            return (
                f'lines of {lines.rows} rows have no parts: method "chunks" needs 4 rows at least; choose "partition"'
            )
        if self.chunk and self.chunk < 4:
            return f"chunk={self.chunk}: parts of fewer than 4 rows leave as much as there was; give 4 or more"
        return ""

    def _parts(self, form: Form, lines: Lines) -> Parts:
        words = 3 + form.rhs
        registers = _REGISTERS if lines.interleaved else _REGISTERS_STAGED
        chunk = self.chunk or max(4, registers * 4 // (words * form.size))
        return Parts(-(-lines.rows // chunk), not lines.interleaved)

    def _level(
        self, form: Form, lines: Lines, level: int = 0, offset: int = 0, given: tuple[str, ...] = ()
    ) -> tuple[list[Body], int]:
        """Return the kernels of a level and those between its two, and how far the working memory is used.

        Parameters
        ----------
        offset
            Of the first free value of the working memory.
        given
            Declarations that make parameters mean the rows that the level before has left.
        """
        parts, reduced = self._parts(form, lines), Form(form.real, "each", form.periodic, form.rhs)
        left = parts.lines(lines, form.rhs)
        ends = f"FL_GLOBAL REAL *const ends = memory + INT64_C({offset});"
        after, before = (*given, ends), _meaning(left, offset)
        free = offset + (3 + form.rhs) * left.rows * left.systems
        first = replace(condense(form, lines, parts), symbol=f"fl_condense_{level}", before=after)
        last = replace(substitute(form, lines, parts), symbol=f"fl_substitute_{level}", before=after)
        if not Partition().refuses(reduced, left):
            return [first, replace(Partition().body(reduced, left), symbol="fl_ends", before=before), last], free
        between, free = self._level(reduced, left, level + 1, free, before)
        return [first, *between, last], free


def _meaning(lines: Lines, offset: int) -> tuple[str, ...]:
    """Return the declarations that make the parameters mean the rows in ``work``: solutions replace right sides."""
    plane = lines.rows * lines.systems
    numbers = {
        "rows": lines.rows, "inner": lines.inner, "outer": 1, "y_first": 0, "x_first": 0, "row_step": lines.row_step,
        "inner_step": lines.inner_step, "outer_step": 0, "rhs_step": lines.rhs_step, "c_row": lines.row_step,
        "c_inner": lines.inner_step, "c_outer": 0, "pinned": -1,
    }  # fmt: skip
    pointers = [
        f"FL_GLOBAL const REAL *const {v} = memory + INT64_C({offset + k * plane});" for k, v in enumerate("abcy")
    ]
    values = [f"const int64_t {name} = INT64_C({value});" for name, value in numbers.items()]
    return (
        *pointers,
        f"FL_GLOBAL REAL *const x = memory + INT64_C({offset + 3 * plane});",
        *values,
        "const double scale = 1;",
    )
