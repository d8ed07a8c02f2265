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

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.codegen.primitive import Function
from fluxloom.linalg.tridiagonal.chunks_text import Parts, condense, substitute
from fluxloom.linalg.tridiagonal.form import Form, Lines
from fluxloom.linalg.tridiagonal.kernels_text import Body, assembled, helpers, size
from fluxloom.linalg.tridiagonal.partition import Partition

__all__ = ["Chunks"]

_REGISTERS, _REGISTERS_STAGED = 128, 64
"""Registers of 4 bytes that the values of a part may fill; fewer where they change places in memory of the group."""


@dataclass(frozen=True)
class _Stage:
    """A kernel, and what gives its parameters their meaning."""

    symbol: str
    form: Form
    body: Body
    before: tuple[str, ...]


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

    def functions(self, form: Form, lines: Lines) -> Sequence[Function]:
        """Return the kernels: the first level condenses, the last puts back."""
        return [assembled(s.symbol, form, s.body, s.before) for s in self._stages(form, lines)]

    def helpers(self, form: Form, lines: Lines) -> str:
        """Return the text before them."""
        return helpers(form)

    def items(self, symbol: str, form: Form, lines: Lines) -> int:
        """Return the work items of a kernel."""
        body = next(s.body for s in self._stages(form, lines) if s.symbol == symbol)
        return body.block * body.groups

    def words(self, form: Form, lines: Lines) -> int:
        """Return the values of the rows that are left, on all levels."""
        found, level = 0, lines
        while level.rows:
            parts = self._parts(form, level)
            found += (3 + form.rhs) * 2 * parts.count * lines.systems
            level = parts.lines(lines, form.rhs)
            if not Partition().refuses(_reduced(form), level):
                return found
        return found

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
        chunk = self.chunk or max(4, registers * 4 // (words * size(form)))
        return Parts(-(-lines.rows // chunk), not lines.interleaved)

    def _stages(
        self, form: Form, lines: Lines, level: int = 0, offset: int = 0, given: tuple[str, ...] = ()
    ) -> list[_Stage]:
        """Return the kernels of a level and those between its two.

        Parameters
        ----------
        offset
            Of the first free value of the working memory.
        given
            Declarations that make parameters mean the rows that the level before has left.
        """
        parts, reduced = self._parts(form, lines), _reduced(form)
        left = parts.lines(lines, form.rhs)
        ends = f"FL_GLOBAL REAL *const ends = memory + INT64_C({offset});"
        after, before = (*given, ends), _meaning(left, offset)
        free = offset + (3 + form.rhs) * left.rows * left.systems
        first = _Stage(f"fl_condense_{level}", form, condense(form, lines, parts), after)
        last = _Stage(f"fl_substitute_{level}", form, substitute(form, lines, parts), after)
        if not Partition().refuses(reduced, left):
            return [first, _Stage("fl_ends", reduced, Partition().body(reduced, left), before), last]
        return [first, *self._stages(reduced, left, level + 1, free, before), last]


def _reduced(form: Form) -> Form:
    return Form(form.real, "each", form.periodic, form.rhs)


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
