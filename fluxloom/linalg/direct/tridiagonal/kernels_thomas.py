"""Thomas's algorithm, a work item a system: for very many systems whose neighbours in memory are of different systems.

Forward, for rows ``i = 0 ... m - 1``::

    p_i = b_i - a_i c'_{i-1}     c'_i = c_i / p_i     y'_i = (y_i - a_i y'_{i-1}) / p_i

then backward ``x_i = y'_i - c'_i x_{i+1}``. ``y'`` waits in ``x`` and ``c'`` in ``work``; where all systems share
their matrix, ``c'`` waits in the memory of the group. In a periodic system the last unknown ``X`` is kept apart:
``x_i = y'_i - l_i X - c'_i x_{i+1}`` with ``l_i = -a_i l_{i-1} / p_i``, and what the last row becomes when the others
are put into it, from the first on, gives ``X``.

Source: L. H. Thomas, "Elliptic problems in linear difference equations over a network", Watson Sci. Comput. Lab.
Report (1949); the bordered form: C. Temperton, "Algorithms for the solution of cyclic tridiagonal systems", J. Comput.
Phys. 19 (1975) 317, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.primitive import source_of
from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import (
    LOCAL_BYTES,
    ROOM,
    Body,
    bordered,
    code,
    named_diagonals,
    report,
    system,
)

__all__ = ["Thomas"]

_FEW, _SOME = 1 << 15, 1 << 17
"""Up to so many systems groups are smaller, that all multiprocessors have some."""

@dataclass(frozen=True)
class Thomas:
    """Thomas's algorithm, a work item a system.

    Words a row and right-hand side that go to or come from memory, with ``R`` right-hand sides: ``4 + 5 / R`` when
    every system has its own matrix, ``4 + 2 / R`` when they are shifted, 4 when they share it; periodic systems move
    ``2 / R`` more, unless they share it.

    Attributes
    ----------
    ahead
        Rows that are asked for before they are needed; 0: chosen from the number of systems.
    block
        Work items of a group; 0: chosen likewise.
    """

    ahead: int = 0
    block: int = 0
    name: str = "thomas"

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the kernel; ``c'`` waits in the working memory, and ``l`` in periodic systems."""
        border, local = bordered(form, lines), self._local(form, lines)
        block = self.block or (32 if lines.systems <= _FEW else 64 if lines.systems <= _SOME else 128)
        names = {
            "AHEAD": self.ahead or (8 if lines.systems <= _FEW and form.rhs <= 2 else 4), "RHS": form.rhs,
            "BORDER": int(border), "BLOCK": block, "LOCAL": int(local), "ROWS": lines.rows if local else "rows",
        }  # fmt: skip
        text = system(form, lines, "FL_ITEM") + source_of(ROOM, "thomas_item.c") + "\n" + report()
        shared = f"    FL_SHARED REAL held[{lines.rows * (1 + border)}];\n" if local else ""
        body = Body("fl_thomas", shared, text, block, -(-lines.systems // block))
        words = lines.rows * (1 if local else lines.systems) * (1 + border)
        return code(form, body, words=words, names={**names, **named_diagonals(form, lines)})

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return an empty string: every system can be solved this way."""
        return ""

    @staticmethod
    def _local(form: Form, lines: Lines) -> bool:
        """Whether what depends on the matrix alone lies in the memory of the group."""
        words = lines.rows * (1 + bordered(form, lines))
        return form.coefficients == "shared" and words * form.size <= LOCAL_BYTES * 2 // 3
