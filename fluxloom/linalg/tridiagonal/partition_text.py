"""Text of the kernel whose groups hold lines together; see `fluxloom.linalg.tridiagonal.partition`."""

from __future__ import annotations

from fluxloom.linalg.tridiagonal.form import Form, Lines
from fluxloom.linalg.tridiagonal.kernels_text import fill, report, system
from fluxloom.linalg.tridiagonal.partition_access import direct, staged, staged_words
from fluxloom.linalg.tridiagonal.partition_shape import Shape

__all__ = ["shared_words", "statements"]

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


def statements(form: Form, lines: Lines, shape: Shape) -> str:
    """Return the statements of the kernel; see `fluxloom.linalg.tridiagonal.partition` for the equations."""
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
