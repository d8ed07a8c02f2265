"""Text that the plain functions for tridiagonal systems share: which systems a chunk has, where their values are.

A thread takes chunks of ``W`` systems, its lanes, through all rows together, so that vector units work on neighbours.
Values of lane ``l`` are ``y[Y(l, i, r)]`` and ``x[X(l, i, r)]``, those of its matrix ``b[K(l, i)]``.
"""

from __future__ import annotations

from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import fill, lost

__all__ = ["chunked", "direct", "macros"]

_FEW_LANES = 8

_FRAME = """
    const int64_t skew = $skew, pieces = ($along + skew + $W - 1) / $W, chunks = pieces * ($across);
$tables_text
    #pragma omp parallel num_threads($threads)
    {
    const int64_t thread = FL_THREAD;
    REAL *const held = work + INT64_C($tables) + thread * INT64_C($each);
    int64_t bad = 0;
    #pragma omp for schedule(static)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
$place
$call
    }
    if (bad) {
        #pragma omp critical
        status[0] = bad > status[0] ? (int32_t)(bad < INT32_MAX ? bad : INT32_MAX) : status[0];
    }
    }
"""

_DIRECT = """
        const int64_t o = chunk / pieces, begin = chunk % pieces * $W - skew, s = begin < 0 ? 0 : begin;
        const int64_t number = o * inner + s;
        const int lanes = (int)((begin + $W < inner ? begin + $W : inner) - s);
        const int64_t y_at = y_first + o * outer_step + s * INT64_C($inner_step);
        const int64_t x_at = x_first + o * outer_step + s * INT64_C($inner_step);
        const int64_t c_at = o * c_outer + s * c_inner;
        (void)c_at;
"""

_LISTED = """
        const int64_t number = chunk * $W;
        const int lanes = (int)(inner * outer - number < $W ? inner * outer - number : $W);
        int64_t y_at[$W], x_at[$W], c_at[$W], o[$W], s[$W];
        for (int l = 0; l < $W; l++) {
            const int64_t q = number + (l < lanes ? l : lanes - 1);
            o[l] = q / inner;
            s[l] = q % inner;
            y_at[l] = y_first + o[l] * outer_step + s[l] * inner_step;
            x_at[l] = x_first + o[l] * outer_step + s[l] * inner_step;
            c_at[l] = o[l] * c_outer + s[l] * c_inner;
        }
        (void)c_at;
"""

_WORDS = """
#define W $W
#define REAL $real
#define FINITE(value) ((value) - (value) == 0)
#define LOST(pivot, whole) ($lost)
#define TELL(l) bad = number + (l) + 1 > bad ? number + (l) + 1 : bad
"""


def direct(lines: Lines) -> bool:
    """Whether neighbours in memory are of different systems, enough of them in a row."""
    return abs(lines.inner_step) < abs(lines.row_step) and lines.inner >= _FEW_LANES


def chunked(
    lines: Lines,
    call: str,
    *,
    width: int,
    threads: int,
    each: int,
    tables: int = 0,
    tables_text: str = "",
    skew: str = "0",
) -> str:
    """Return the loop over chunks of systems.

    Parameters
    ----------
    call
        What is done with a chunk; ``TELL(l)`` says that a lane has no solution.
    width
        Systems of a chunk.
    each
        Values of working memory of a thread, ``held``.
    tables, tables_text
        Values at the beginning of the working memory that all threads share, and what fills them.
    skew
        By how many systems the first chunk is shorter, where neighbours in memory are of different systems.
    """
    along, across = ("inner", "outer") if direct(lines) else ("inner * outer", "1")
    return fill(
        _FRAME, W=width, threads=threads, each=each, tables=tables, call=call, along=along, across=across,
        tables_text=tables_text, skew=skew,
        place=fill(_DIRECT if direct(lines) else _LISTED, W=width, inner_step=lines.inner_step),
    )  # fmt: skip


def macros(form: Form, lines: Lines, width: int) -> str:
    """Return the definitions of the addresses of values, in a chunk.

    A chunk whose neighbours are of different systems says by ``across`` how far apart values of their matrices lie.
    """
    each = form.coefficients == "each"
    if direct(lines):
        step, rhs = lines.inner_step, lines.rhs_step
        places = {
            "Y(l, i, r)": f"y_at + (l) * INT64_C({step}) + (i) * row_step + (r) * INT64_C({rhs})",
            "X(l, i, r)": f"x_at + (l) * INT64_C({step}) + (i) * row_step + (r) * INT64_C({rhs})",
            "K(l, i)": "c_at + (l) * across + (i) * c_row" if each else "(i) * c_row",
            "SHIFT(l)": "inner_shift[s + (l)] + outer_shift[o]",
        }
    else:
        places = {
            "Y(l, i, r)": "y_at[l] + (i) * row_step + (r) * rhs_step",
            "X(l, i, r)": "x_at[l] + (i) * row_step + (r) * rhs_step",
            "K(l, i)": "c_at[l] + (i) * c_row" if each else "(i) * c_row",
            "SHIFT(l)": "inner_shift[s[l]] + outer_shift[o[l]]",
        }
    defined = "".join(f"#define {name} ({text})\n" for name, text in places.items())
    return fill(_WORDS, W=width, real=form.real, lost=lost(form)) + defined
