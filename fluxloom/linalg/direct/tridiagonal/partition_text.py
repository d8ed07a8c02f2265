"""Text of the kernel whose groups hold lines together; see `fluxloom.linalg.direct.tridiagonal.partition`."""

from __future__ import annotations

from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import LOCAL_BYTES, diagonals, fill, report, system
from fluxloom.linalg.direct.tridiagonal.partition_shape import Shape

__all__ = ["COEFFICIENTS", "FETCH", "STORE", "TURN_IN", "TURN_OUT", "VALUES", "load", "shared_words", "statements"]

_ROWS = """
    /* Rows of this item: begin - pad + j, j = 0 ... K - 1. With pad the first one repeats the last row before. */
    const int begin = t * $quotient + (t < $rest ? t : $rest), pad = $pad, from = begin - pad;
    REAL A[$K], B[$K], C[$K], Y[$rhs][$K];
"""

_PAD = """
    if (pad) {
        A[0] = -1; B[0] = 1; C[0] = 0;
        FL_UNROLL for (int r = 0; r < $rhs; r++) Y[r][0] = 0;
    }
"""

_ELIMINATE = """
    REAL cp = 0, left = -1, d[$rhs];
    FL_UNROLL for (int r = 0; r < $rhs; r++) d[r] = 0;
    FL_UNROLL for (int j = 0; j < $K - 1; j++) {
        const REAL pivot = B[j] - A[j] * cp, inverse = 1 / pivot;
        cp = C[j] * inverse;
        FL_UNROLL for (int r = 0; r < $rhs; r++) { d[r] = (Y[r][j] - A[j] * d[r]) * inverse; Y[r][j] = d[r]; }
        left = -A[j] * left * inverse;
        A[j] = left;
        C[j] = cp;
    }
    /* The first row in terms of the last rows of the chunk before and of this one: x = D - L x_p - M x_last. */
    REAL L = 0, M = -1, D[$rhs];
    FL_UNROLL for (int r = 0; r < $rhs; r++) D[r] = 0;
    FL_UNROLL for (int j = $K - 2; j >= 0; j--) {
        if (j > 0 || !pad) {
            FL_UNROLL for (int r = 0; r < $rhs; r++) D[r] = Y[r][j] - C[j] * D[r];
            L = A[j] - C[j] * L;
            M = -C[j] * M;
        }
    }
    const REAL below = A[$K - 1], above = C[$K - 1];
    REAL main = B[$K - 1] - below * cp, low = -below * left, high, z[$rhs];
"""

_REDUCED = """
    box[$own] = L; box[$half + $own] = M;
    FL_UNROLL for (int r = 0; r < $rhs; r++) box[(2 + r) * $half + $own] = D[r];
    FL_BARRIER();
    {
        const int next = $next;
        main -= above * box[next];
        high = -above * box[$half + next];
        const REAL inverse = 1 / main;
        low *= inverse; high *= inverse;
        FL_UNROLL for (int r = 0; r < $rhs; r++)
            z[r] = (Y[r][$K - 1] - below * d[r] - above * box[(2 + r) * $half + next]) * inverse;
    }
"""

_STEP = """
    {
        box[$at + $own] = low; box[$at + $half + $own] = high;
        FL_UNROLL for (int r = 0; r < $rhs; r++) box[$at + (2 + r) * $half + $own] = z[r];
        FL_BARRIER();
        const int m = $at + $before, p = $at + $after;
        const REAL pivot = 1 - low * box[$half + m] - high * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < $rhs; r++)
            z[r] = (z[r] - low * box[(2 + r) * $half + m] - high * box[(2 + r) * $half + p]) * inverse;
        low = -low * box[m] * inverse;
        high = -high * box[$half + p] * inverse;
    }
"""

_LAST_STEP = """
    {
        const REAL both = low + high;
        box[$at + $own] = both;
        FL_UNROLL for (int r = 0; r < $rhs; r++) box[$at + (1 + r) * $half + $own] = z[r];
        FL_BARRIER();
        const int p = $at + $after;
        const REAL pivot = 1 - both * box[p], inverse = 1 / pivot;$lost
        FL_UNROLL for (int r = 0; r < $rhs; r++) z[r] = (z[r] - both * box[(1 + r) * $half + p]) * inverse;
    }
"""

_ALONE = """
    {
        const REAL pivot = 1 + low + high;$lost
        FL_UNROLL for (int r = 0; r < $rhs; r++) z[r] /= pivot;
    }
"""

_BACK = """
    FL_UNROLL for (int r = 0; r < $rhs; r++) box[$at + r * $half + $own] = z[r];
    FL_BARRIER();
    /* A pivot that vanished, in the chunk or in the reduction, left no number here, whatever it was multiplied by. */
    FL_UNROLL for (int r = 0; r < $rhs; r++) bad |= z[r] - z[r] != 0;
    FL_UNROLL for (int r = 0; r < $rhs; r++) {
        const REAL known = box[$at + r * $half + $before];
        REAL last = z[r];
        Y[r][$K - 1] = last;
        FL_UNROLL for (int j = $K - 2; j >= 0; j--) {
            last = Y[r][j] - A[j] * known - C[j] * last;
            Y[r][j] = last;
        }
    }
"""

_ROW = "from + j > 0 ? from + j : 0"
"""Row ``j`` of an item; there may be one before the first of the line, which is not read."""

COEFFICIENTS = "A[j] = $a; B[j] = $b; C[j] = $c;"
VALUES = "FL_UNROLL for (int r = 0; r < $rhs; r++) Y[r][j] = factor * y[y_at + i * row_step + r * rhs_step];"

_LOAD = """
    FL_UNROLL for (int j = 0; j < $K; j++) {
        const int64_t i = $row;
        %s
    }
"""

_LOAD_PAIRS = """
    const size_t places = (size_t)(y + y_at) | (size_t)(x + x_at) | (size_t)row_step * sizeof(REAL);
    const int even = (places & (2 * sizeof(REAL) - 1)) == 0;
    if (even) {
        FL_UNROLL for (int j = 0; j < $K; j++) {
            const int64_t i = $row;
            const ${real}2 pair = *(FL_GLOBAL const ${real}2 *)(y + y_at + i * row_step);
            Y[0][j] = factor * pair.x;
            Y[1][j] = factor * pair.y;
        }
    } else {$plain    }
"""

_LOAD_TABLES = """
    const size_t tables = (size_t)a | (size_t)b | (size_t)c$mass_place;
    if (c_row == 1 && (tables & (2 * sizeof(REAL) - 1)) == 0) {
        FL_UNROLL for (int j = 0; j < $K; j += 2) {
            const ${real}2 low = *(FL_GLOBAL const ${real}2 *)(a + from + j);
            const ${real}2 main = *(FL_GLOBAL const ${real}2 *)(b + from + j);
            const ${real}2 high = *(FL_GLOBAL const ${real}2 *)(c + from + j);
            A[j] = low.x; B[j] = main.x; C[j] = high.x;
            A[j + 1] = low.y; B[j + 1] = main.y; C[j + 1] = high.y;
            $mass
        }
$ends    } else {$plain    }
"""

_MASS = """const ${real}2 more = *(FL_GLOBAL const ${real}2 *)(mass + from + j);
            B[j] += more.x * shift; B[j + 1] += more.y * shift;"""

FETCH = """
    FL_UNROLL for (int v = 0; v < $cells; v++) {
        const int e = FL_MEMBER + v * $block, $away;
        $cell = e < $values ? $factor${source}[$from] : (REAL)0;
    }
"""
"""Every item fetches values whose neighbours are those of its neighbours: value ``e`` of all of the group."""

TURN_IN = """
    FL_UNROLL for (int v = 0; v < $cells; v++) {
        const int e = FL_MEMBER + v * $block, $away;
        if (e < $values) box[$away_at + $spot] = $cell;
    }
    FL_BARRIER();
    FL_UNROLL for (int j = 0; j < $K; j++) {
        FL_UNROLL for (int r = 0; r < $width; r++) {
            const int place = ($row) * $width + r;
            $own = box[$own_at + $spot];
        }
    }
    FL_BARRIER();
"""
"""The values change places in the memory of the group, ``box``: then every item has those of its own rows."""

TURN_OUT = """
    FL_BARRIER();
    FL_UNROLL for (int j = 0; j < $K; j++) {
        FL_UNROLL for (int r = 0; r < $width; r++) {
            const int place = ($first + j) * $width + r;
            if ($mine) box[$own_at + $spot] = $own;
        }
    }
    FL_BARRIER();
    FL_UNROLL for (int v = 0; v < $cells; v++) {
        const int e = FL_MEMBER + v * $block, $away;
        if (e < $values$there) x[$to] = box[$away_at + $spot];
    }
"""
"""The way back: solutions are stored by those who have their neighbours."""

STORE = """
    FL_UNROLL for (int j = 0; j < $K; j++) {
        const int64_t i = from + j;
        if ($own_row) {
            FL_UNROLL for (int r = 0; r < $rhs; r++) x[x_at + i * row_step + r * rhs_step] = Y[r][j];
        }
    }
"""

_STORE_PAIRS = """
    if (even) {
        FL_UNROLL for (int j = 0; j < $K; j++) {
            const int64_t i = from + j;
            if ($own_row) {
                ${real}2 pair;
                pair.x = Y[0][j];
                pair.y = Y[1][j];
                *(FL_GLOBAL ${real}2 *)(x + x_at + i * row_step) = pair;
            }
        }
    } else {$plain    }
"""


def load(what: str, **common: object) -> str:
    """Return what fetches `COEFFICIENTS`, `VALUES` or both of the rows of an item; ``row``: the number of row ``j``."""
    return fill(_LOAD % what, **common)


def direct(form: Form, lines: Lines, shape: Shape) -> tuple[str, str]:
    """Return how values are fetched, and stored, when neighbouring items are of different systems."""
    common = {"K": shape.chunk, "rhs": form.rhs, "real": form.real, "row": _ROW}
    own_row = "there && (j > 0 || !pad)"
    load_y, store = load(VALUES, **common), fill(STORE, **common, own_row=own_row)
    if form.rhs == 2 and lines.rhs_step == 1:
        load_y = fill(_LOAD_PAIRS, **common, plain=load_y)
        store = fill(_STORE_PAIRS, **common, own_row=own_row, plain=store)
    return load_y + _coefficients(form, lines, shape), store


def _coefficients(form: Form, lines: Lines, shape: Shape) -> str:
    """Return how an item fetches the coefficients of its own rows: two at once where all systems share them."""
    a, b, c = diagonals(form, lines, "i")
    plain = load(COEFFICIENTS, K=shape.chunk, row=_ROW, a=a, b=b, c=c)
    if form.coefficients == "each" or shape.chunk % 2 or lines.rows % shape.chunks:
        return plain
    shifted = form.coefficients == "shifted"
    return fill(
        _LOAD_TABLES, K=shape.chunk, real=form.real, plain=plain, ends=_ends(form, lines, shape),
        mass=fill(_MASS, real=form.real) if shifted else "", mass_place=" | (size_t)mass" if shifted else "",
    )  # fmt: skip


def staged_words(form: Form, lines: Lines, shape: Shape) -> int:
    """Return the values of memory of the group in which values change places."""
    return _words(_turn(shape, lines, _width(form, lines, shape)), shape)


def staged(form: Form, lines: Lines, shape: Shape) -> tuple[str, str]:
    """Return how values are fetched, and stored, when neighbouring values are rows of one system.

    Items first fetch neighbours, then change places with each other in the memory of the group.
    """
    each, width = form.coefficients == "each", _width(form, lines, shape)
    text = "    if (t == 0) {\n        base_y[lane] = y_at;\n        base_x[lane] = x_at;\n"
    text += ("        base_c[lane] = c_at;\n" if each else "") + "    }\n    FL_BARRIER();\n"
    sides = [_sides(shape, lines, width, r) for r in range(form.rhs // width)]
    turns = [{**side, "source": "y", "factor": "factor * "} for side in sides]
    if each:
        table = {**_turn(shape, lines, 1), "from": "base_c[line] + place * c_row", "factor": ""}
        turns += [{**table, "source": v, "cell": f"{v.upper()}[v]", "own": f"{v.upper()}[j]"} for v in "abc"]
    text += "".join(fill(FETCH, **turn) for turn in turns)
    text += "" if each else _coefficients(form, lines, shape)
    text += "".join(fill(TURN_IN, **turn) for turn in turns)
    text += _ends(form, lines, shape) if each else ""
    return text, "".join(fill(TURN_OUT, **side) for side in sides)


def _width(form: Form, lines: Lines, shape: Shape) -> int:
    """Return the right-hand sides that change places together: all, where they lie side by side without gaps.

    One by one they would leave gaps between what neighbouring items fetch and store.
    """
    close = form.rhs <= 2 and lines.rhs_step == 1 and lines.row_step == form.rhs
    fits = _words(_turn(shape, lines, form.rhs), shape) * form.size <= LOCAL_BYTES * 3 // 4
    return form.rhs if close and fits else 1


def _words(turn: dict[str, object], shape: Shape) -> int:
    return shape.lanes * int(str(turn["pitch"]))


def _turn(shape: Shape, lines: Lines, width: int) -> dict[str, object]:
    """Return the numbers of a change of places of lines with ``width`` values a row."""
    length, own = lines.rows * width, shape.chunk * width
    gaps = own % 2 == 0  # a gap for each item, that items reach different banks
    pitch = length + (length // own + 1 if gaps else 0)
    return {
        "K": shape.chunk, "width": width, "cells": own, "block": shape.block, "values": shape.lanes * length,
        "pitch": pitch, "spot": f"(place + place / {own})" if gaps else "place",
        "away": f"line = e / {length}, place = e - line * {length}", "away_at": f"line * {pitch}",
        "own_at": f"lane * {pitch}", "row": _ROW, "first": "from", "mine": "j > 0 || !pad",
        "there": f" && FL_GROUP * {shape.lanes} + line < systems",
    }  # fmt: skip


def _sides(shape: Shape, lines: Lines, width: int, r: int) -> dict[str, object]:
    """Return a change of places of right-hand side ``r``, or of all."""
    turn = _turn(shape, lines, width)
    at, cell, own = f"place * row_step + {r} * rhs_step", f"Y[{r}][v]", f"Y[{r}][j]"
    if width > 1:
        at, cell, own = "place", f"Y[v / {shape.chunk}][v % {shape.chunk}]", "Y[r][j]"
    places = {"from": f"base_y[line] + {at}", "to": f"base_x[line] + {at}"}
    return {**turn, **places, "cell": cell, "own": own}


def _ends(form: Form, lines: Lines, shape: Shape) -> str:
    """Return what the first and the last row have of their own."""
    last = shape.chunk - 1
    if form.periodic and lines.rows == 1:
        return "    B[0] = A[0] + B[0] * doubled + C[0]; A[0] = 0; C[0] = 0;\n"
    text = "    if (t == 0) B[0] *= doubled;\n"
    if form.periodic:
        return text
    return text + f"    if (t == 0) A[0] = 0;\n    if (t == {shape.chunks - 1}) C[{last}] = 0;\n"


def statements(form: Form, lines: Lines, shape: Shape) -> str:
    """Return the statements of the kernel; see `fluxloom.linalg.direct.tridiagonal.partition` for the equations."""
    own_lines = "FL_MEMBER / $T" if shape.staged else "FL_MEMBER % $L"
    chunk = "FL_MEMBER % $T" if shape.staged else "FL_MEMBER / $L"
    number = f"    const int lane = {own_lines}, t = {chunk};\n"
    text = fill(number, T=shape.chunks, L=shape.lanes) + system(form, lines, f"FL_GROUP * {shape.lanes} + lane")
    quotient, rest = divmod(lines.rows, shape.chunks)
    common = {"K": shape.chunk, "rhs": form.rhs, "real": form.real}
    pad = f"t >= {rest}" if rest else "0"
    text += fill(_ROWS, **common, quotient=quotient, rest=rest, pad=pad)
    load, store = (staged if shape.staged else direct)(form, lines, shape)
    text += load + (fill(_PAD, **common) if rest else "") + fill(_ELIMINATE, **common)
    return text + _solve(form, shape) + store + report()


def shared_words(form: Form, lines: Lines, shape: Shape) -> int:
    """Return the values of memory that the items of a group share."""
    exchange = 2 * (2 + form.rhs) * shape.lanes * shape.chunks
    return max(exchange, staged_words(form, lines, shape)) if shape.staged else exchange


def _solve(form: Form, shape: Shape) -> str:
    """Return the parallel cyclic reduction of the last rows of the chunks, and what follows for the others."""
    chunks, half = shape.chunks, shape.lanes * shape.chunks

    def at(place: str) -> str:
        wrapped = f"(({place}) & {chunks - 1})"
        return f"(lane * {chunks} + {wrapped})" if shape.staged else f"({wrapped} * {shape.lanes} + lane)"

    common = {"K": shape.chunk, "rhs": form.rhs, "half": half, "own": "FL_MEMBER"}
    text, turn = fill(_REDUCED, **common, next=at("t + 1")), 1
    distance = 1
    while distance * 2 < chunks:
        where = {"at": (turn % 2) * (2 + form.rhs) * half, "before": at(f"t - {distance}")}
        text += fill(_STEP, **common, **where, after=at(f"t + {distance}"))
        turn, distance = turn + 1, distance * 2
    lost = " bad |= FL_LOST(pivot, (REAL)(doubled == 1));" if form.periodic else ""
    if chunks == 1:
        text += fill(_ALONE, **common, lost=lost)
    else:
        where = {"at": (turn % 2) * (2 + form.rhs) * half, "after": at(f"t + {chunks // 2}")}
        text += fill(_LAST_STEP, **common, **where, lost=lost)
        turn += 1
    return text + fill(_BACK, **common, at=(turn % 2) * (2 + form.rhs) * half, before=at("t - 1"))
