"""Lines of any length: every part of a line is condensed to two rows, they are solved, and the rest is put back.

A line of ``n`` rows has ``P`` parts of up to ``K`` rows, which work items hold in registers. One pass reads all values
and leaves two rows a part, `condense`; the system of ``2 P`` rows is solved by
`Partition`, or is divided again; a second pass reads the values again and writes the unknowns. With matrices of their
own, systems move ``9 + 10 * 2 / K`` words a row.

Source: H. H. Wang, "A parallel method for tridiagonal equations", ACM Trans. Math. Softw. 7 (1981) 170; L.-W. Chang,
J. A. Stratton, H.-S. Kim, W. W. Hwu, "A scalable, numerically stable, high-performance tridiagonal solver using GPUs",
SC (2012) 27, section 3 (dividing lines over groups).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import Body, code, diagonals, fill, report, system
from fluxloom.linalg.direct.tridiagonal.partition import Partition
from fluxloom.linalg.direct.tridiagonal.partition_text import (
    COEFFICIENTS,
    FETCH,
    STORE,
    TURN_IN,
    TURN_OUT,
    VALUES,
    load,
)

__all__ = ["Chunks"]

_REGISTERS, _REGISTERS_STAGED = 128, 64
"""Registers of 4 bytes that the values of a part may fill; fewer where they change places in memory of the group."""


_BLOCK = 128
_FEW = 1 << 15
"""Up to so many items groups are smaller, that all multiprocessors have some."""


@dataclass(frozen=True)
class Parts:
    """How a line is divided.

    Attributes
    ----------
    count
        Parts of a line. Each has ``rows // count`` rows, the first ``rows % count`` of them one more; at least 2.
    staged
        Whether neighbouring work items have neighbouring parts of one line, and values change places in the memory of
        the group; else they have the same part of neighbouring lines.
    """

    count: int
    staged: bool

    def lines(self, lines: Lines, rhs: int) -> Lines:
        """Return where the two rows of each part lie, for one of the coefficients or for all right-hand sides."""
        rows, systems = 2 * self.count, lines.systems
        row_step, inner_step = (1, rows) if self.staged else (systems, 1)
        return Lines(rows, systems, 1, rhs, row_step, inner_step, 0, rows * systems)

    def block(self, lines: Lines) -> int:
        """Return the work items of a group."""
        return _BLOCK if self.staged or lines.systems * self.count > _FEW else 32

    def groups(self, lines: Lines) -> int:
        """Return the groups of work items."""
        block = self.block(lines)
        return lines.systems * -(-self.count // block) if self.staged else -(-lines.systems * self.count // block)


_SIDE_BY_SIDE = """
    const int64_t piece = FL_ITEM / (inner * outer), part = piece < $count ? piece : $count - 1;
"""

_IN_LINE = """
    const int64_t group = FL_GROUP % $groups, piece = group * $block + FL_MEMBER;
    const int64_t part = piece < $count ? piece : $count - 1;
"""

_ROWS = """
    const int own = there && piece < $count, m = $quotient + (part < $rest);
    const int64_t from = part * $quotient + (part < $rest ? part : $rest);
    const int64_t at_ends = 2 * part * $row_step + q * $sys_step;
    REAL A[$K], B[$K], C[$K], Y[$rhs][$K];
"""

_SEGMENT = """
    const int64_t first_part = group * $block, next_part = first_part + $block < $count ? first_part + $block : $count;
    const int64_t start = first_part * $quotient + (first_part < $rest ? first_part : $rest);
    const int values = (int)(next_part * $quotient + (next_part < $rest ? next_part : $rest) - start);
    const int inside = (int)(from - start);
"""

_CONDENSE = """
    REAL head = B[0], tie = C[0], low = A[1], main = B[1], high = C[1], hd[$rhs], ld[$rhs];
    FL_UNROLL for (int r = 0; r < $rhs; r++) { hd[r] = Y[r][0]; ld[r] = Y[r][1]; }
    FL_UNROLL for (int j = 2; j < $K; j++) {
        if (j < $K - 1 || m == $K) {
            const REAL inverse = 1 / main, up = tie * inverse, down = A[j] * inverse;
            bad |= FL_BAD(main);
            FL_UNROLL for (int r = 0; r < $rhs; r++) { hd[r] -= up * ld[r]; ld[r] = Y[r][j] - down * ld[r]; }
            head -= up * low;
            tie = -up * high;
            main = B[j] - down * high;
            low = -down * low;
            high = C[j];
        }
    }
    if (own) {
        FL_GLOBAL REAL *const e = ends + at_ends;
        e[0] = A[0]; e[$row_step] = low;
        e[$plane] = head; e[$plane + $row_step] = main;
        e[2 * $plane] = tie; e[2 * $plane + $row_step] = high;
        FL_UNROLL for (int r = 0; r < $rhs; r++) {
            e[(3 + r) * $plane] = hd[r];
            e[(3 + r) * $plane + $row_step] = ld[r];
        }
    }
"""

_SUBSTITUTE = """
    {
        FL_GLOBAL const REAL *const found = ends + 3 * $plane + at_ends;
        REAL cp = 0, d[$rhs];
        FL_UNROLL for (int r = 0; r < $rhs; r++) { d[r] = found[r * $plane]; Y[r][0] = d[r]; }
        FL_UNROLL for (int j = 1; j < $K - 1; j++) {
            if (j < $K - 2 || m == $K) {
                const REAL inverse = 1 / (B[j] - A[j] * cp);
                cp = C[j] * inverse;
                C[j] = cp;
                FL_UNROLL for (int r = 0; r < $rhs; r++) { d[r] = (Y[r][j] - A[j] * d[r]) * inverse; Y[r][j] = d[r]; }
            }
        }
        FL_UNROLL for (int r = 0; r < $rhs; r++) {
            REAL last = found[r * $plane + $row_step];
            if (m == $K) Y[r][$K - 1] = last;
            else Y[r][$short] = last;
            FL_UNROLL for (int j = $K - 2; j >= 1; j--) {
                if (j < $K - 2 || m == $K) {
                    last = Y[r][j] - C[j] * last;
                    Y[r][j] = last;
                }
            }
        }
    }
"""


def condense(form: Form, lines: Lines, parts: Parts) -> Body:
    """Return the kernel that leaves two rows of every part, in the unknowns at its ends and those beside them.

    With ``l`` the unknown before the part, ``f`` its first, ``g`` its last and ``r`` the one behind it::

        a_f l + b_f f + c_f g = d_f           a_g f + b_g g + c_g r = d_g

    They are rows ``2 p`` and ``2 p + 1`` of a tridiagonal system of ``2 count`` rows, which is periodic if the lines
    are. ``ends`` has, one after the other, ``a``, ``b``, ``c`` and each right-hand side as `Parts.lines` says. Row by
    row, the unknown ``x_{j-1} = (d - a f - c x_j) / b`` leaves the first row and row ``j``; values are read once.
    """
    common = _common(form, lines, parts)
    text = _opening(form, lines, parts, common) + fill(_CONDENSE, **common) + report()
    return _body(parts, lines, common, text)


def substitute(form: Form, lines: Lines, parts: Parts) -> Body:
    """Return the kernel that finds all unknowns of every part from its first and last.

    These stand in ``ends`` in place of the right-hand sides that `condense` left there.
    """
    common = _common(form, lines, parts)
    text = _opening(form, lines, parts, common) + fill(_SUBSTITUTE, **common)
    if parts.staged:
        text += "".join(fill(TURN_OUT, **_turn(common), **_side(r)) for r in range(form.rhs))
    else:
        text += fill(STORE, **common, own_row="own && j < m")
    return _body(parts, lines, common, text)


def _common(form: Form, lines: Lines, parts: Parts) -> dict[str, object]:
    quotient, rest = divmod(lines.rows, parts.count)
    chunk, ends = quotient + (rest > 0), parts.lines(lines, form.rhs)
    a, b, c = diagonals(form, lines, "i")
    return {
        "K": chunk, "short": max(0, chunk - 2), "rhs": form.rhs, "count": parts.count, "quotient": quotient,
        "rest": rest, "block": parts.block(lines), "groups": -(-parts.count // parts.block(lines)), "a": a, "b": b,
        "c": c, "gap": chunk if chunk % 2 == 0 else chunk * 1024, "row_step": ends.row_step,
        "sys_step": ends.inner_step, "plane": ends.rhs_step, "row": "from + (j < m ? j : m - 1)",
    }  # fmt: skip


def _body(parts: Parts, lines: Lines, common: dict[str, object], text: str) -> Body:
    chunk, block = int(str(common["K"])), parts.block(lines)
    shared = f"    FL_SHARED REAL box[{block * (chunk + 1) + 1}];\n" if parts.staged else ""
    return Body("", shared, text, block, parts.groups(lines))


def _turn(common: dict[str, object]) -> dict[str, object]:
    """Return how values of neighbouring parts change places: the rows of all parts of a group lie in a row."""
    return {
        "K": common["K"], "width": 1, "cells": common["K"], "block": common["block"], "values": "values",
        "spot": fill("place + place / $gap", **common), "away": "place = e", "away_at": "0", "own_at": "0",
        "row": "inside + (j < m ? j : m - 1)", "first": "inside", "mine": fill("piece < $count && j < m", **common),
        "there": "",
    }  # fmt: skip


def _side(r: int) -> dict[str, object]:
    """Return where a right-hand side is."""
    places = {way: f"{at} + (start + e) * row_step + {r} * rhs_step" for way, at in (("from", "y_at"), ("to", "x_at"))}
    return {**places, "cell": f"Y[{r}][v]", "own": f"Y[{r}][j]"}


def _opening(form: Form, lines: Lines, parts: Parts, common: dict[str, object]) -> str:
    """Return what fetches the rows of a part."""
    if parts.staged:
        text, number = fill(_IN_LINE, **common), fill("FL_GROUP / $groups", **common)
    else:
        text, number = fill(_SIDE_BY_SIDE, **common), "piece == part ? FL_ITEM - part * inner * outer : inner * outer"
    text += system(form, lines, number) + fill(_ROWS, **common)
    if not parts.staged:
        return text + load(f"{COEFFICIENTS}\n        {VALUES}", **common)
    text += fill(_SEGMENT, **common)
    turns = [{**_turn(common), **_side(r), "source": "y", "factor": "factor * "} for r in range(form.rhs)]
    if form.coefficients == "each":
        table = {**_turn(common), "from": "c_at + (start + e) * c_row", "factor": ""}
        turns += [{**table, "source": v, "cell": f"{v.upper()}[v]", "own": f"{v.upper()}[j]"} for v in "abc"]
    text += "".join(fill(FETCH, **turn) for turn in turns)
    if form.coefficients != "each":
        text += load(COEFFICIENTS, **common)
    text += "".join(fill(TURN_IN, **turn) for turn in turns)
    if form.coefficients != "each":
        return text
    text += "    if (part == 0) B[0] *= doubled;\n"
    if form.periodic:
        return text
    last = "    if (part == $count - 1) { if (m == $K) C[$K - 1] = 0; else C[$short] = 0; }\n"
    return text + "    if (part == 0) A[0] = 0;\n" + fill(last, **common)


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
