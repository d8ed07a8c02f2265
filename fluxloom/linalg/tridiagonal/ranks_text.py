"""Text of the functions that condense the rows of a rank to two rows a system, and that bring the ends back.

Condensing goes once through the rows ``0 ... n - 1`` of this rank, whose neighbours are ``l = -1`` and ``r = n`` on
other ranks, and keeps two equations, in the unknowns of its first and last row and those beside them::

    a_0 x_l + f_b x_0 + f_c x_i = f_d            (first)
    g_a x_0 + g_b x_i + c_i x_{i+1} = g_d        (row i)

In the step from row ``i`` to the next, ``x_i = (g_d - g_a x_0 - c_i x_{i+1}) / g_b`` leaves both. Values are read once,
and nothing but the two equations is written: two values a system and right-hand side. What is carried along is not the
diagonal but the sum of a row, ``f_e`` and ``g_e``, in which nothing cancels where diagonals outweigh the rest: small
systems that are nearly singular, as those of the constant mode, keep their digits (Grassmann, Taksar and Heyman). The
couplings to other ranks are left out of it; the outermost ones need not have a value.

Source: H. H. Wang, "A parallel method for tridiagonal equations", ACM Trans. Math. Softw. 7 (1981) 170, section 3;
W. K. Grassmann, M. I. Taksar and D. P. Heyman, Oper. Res. 33 (1985) 1107, for sums of rows in place of diagonals;
E. Laszlo, M. Giles and J. Appleyard, ACM Trans. Math. Softw. 42 (2016) 31, section 3.2.
"""

from __future__ import annotations

from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.linalg.tridiagonal.form import Form, Lines

__all__ = ["BLOCK", "LANES", "condense", "join_ends"]

BLOCK = 128
"""Work items of a group."""

LANES = 256
"""Systems that a processor takes through the rows together."""

_AHEAD = 4
"""Rows whose values a work item asks for before it needs them."""

_STEPS = ("inner_step", "rhs_step", "c_inner")


def condense(form: Form, lines: Lines, rhs: int, *, coefficients: bool, items: bool, c_inner: int) -> Function:
    """Return ``fl_condense``: writes the two equations of the systems ``begin ... begin + count - 1``.

    Those of system ``s`` are in the block ``s / share``, which begins at ``ends_first + s / share * block_step``: for
    each of the two equations the right-hand sides of all systems of the block, ``(share, rhs)``, then, with
    ``coefficients``, the coefficients ``(3, share)``.
    """
    pointer = f"{form.real} *"
    read = [Parameter(pointer, name) for name in ("y", "a", "b", "c", "mass", "inner_shift", "outer_shift")]
    sizes = [
        "rows", "inner", "begin", "count", "y_first", "row_step", "inner_step", "outer_step", "rhs_step",
        "c_row", "c_inner", "c_outer", "pinned", "ends_first", "share", "block_step", "threads",
    ]  # fmt: skip
    parameters = (
        *(Parameter(p.ctype, p.name, shared=True) for p in read),
        Parameter(pointer, "ends", written=True, shared=True),
        *(Parameter("int64_t", name) for name in sizes), Parameter("double", "scale"),
    )  # fmt: skip
    body = _CONDENSE_KERNEL if items else _CONDENSE_PLAIN
    packed = lines.inner_step == form.rhs and (form.rhs == 1 or lines.rhs_step == 1)
    words = {
        "STEP_AHEAD": _step("ahead[j][r]"), "STEP": _step("y[Y(k, r)]"), "AHEAD": str(_AHEAD),
        "            PREFETCH\n": _PREFETCH.lstrip("\n") if packed and rhs else "",
        "            VALUES": (_PACKED if packed else _SPREAD).strip("\n") if rhs else "            (void)row;",
        "REAL": form.real, "RHS": str(rhs), "SOME": str(max(1, rhs)), "KINDS": str(rhs + 3 * coefficients),
        "SHIFTED": " + mass[i] * shift" if form.coefficients == "shifted" else "",
        "GIVEN": "inner_shift[s] + outer_shift[o]" if form.coefficients == "shifted" else "0",
        "COEFFICIENTS": str(int(coefficients)), "LANES": str(LANES),
    }  # fmt: skip
    return Function("fl_condense", parameters, _filled(body, words, lines, c_inner), BLOCK if items else 1)


def join_ends(form: Form, lines: Lines, *, items: bool) -> Function:
    """Return ``fl_join_ends``: takes what the rows beside the first and the last one contribute to the right side.

    ``near[left_first + s / share * block_step + s % share * rhs + r]`` is the neighbour's value of right-hand side
    ``r`` of system ``s``, with ``right_first`` that on the other side; ``left`` and ``right``: are there any?
    """
    pointer = f"{form.real} *"
    sizes = [
        "rows", "inner", "systems", "y_first", "row_step", "inner_step", "outer_step", "rhs_step", "c_row", "c_inner",
        "c_outer", "left", "right", "left_first", "right_first", "share", "block_step", "threads",
    ]  # fmt: skip
    parameters = (
        Parameter(pointer, "y", written=True, shared=True),
        *(Parameter(pointer, name, shared=True) for name in ("a", "c", "near")),
        *(Parameter("int64_t", name) for name in sizes), Parameter("double", "inverse"),
    )  # fmt: skip
    body = _JOIN_KERNEL if items else _JOIN_PLAIN
    words = {"STATEMENTS": _JOIN, "REAL": form.real, "RHS": str(form.rhs)}
    return Function("fl_join_ends", parameters, _filled(body, words, None, -1), BLOCK if items else 1)


def _filled(body: str, words: dict[str, str], lines: Lines | None, c_inner: int) -> str:
    """Return a body with its constants; small steps are constants too, so that a compiler sees what lies together."""
    for name, text in words.items():
        body = body.replace(name, text)
    if lines is None:
        return body
    for name, value in zip(_STEPS, (lines.inner_step, lines.rhs_step, c_inner), strict=True):
        if value in (0, 1, 2):
            body = body.replace(f"* {name}", f"* {value}")
    return body


def _step(value: str) -> str:
    """Return the statements of a work item that go from the row ``k - 1`` to ``k``, given its right-hand side."""
    return _STEP.replace("VALUE", value)


_STEP = """
                const REAL turn = 1 / gb, low = a[C(k)] * turn, head = fc * turn, tail = c[C(k - 1)];
                fe -= head * ge;
                const REAL after = k < rows - 1 ? c[C(k)] : 0;
                ge = EXCESS(a[C(k)], after, k) - low * ge;
                fc = -head * tail;
                ga = -low * ga;
                gb = ge - ga - after;
                for (int r = 0; r < RHS; r++) {
                    fd[r] -= head * gd[r];
                    gd[r] = (REAL)scale * VALUE - low * gd[r];
                }"""

_PREFETCH = """
            if (k + 1 < rows) fl_ahead(row + row_step, (int64_t)lanes * RHS * (int64_t)sizeof(REAL));
"""

_PACKED = """
#pragma omp simd
            for (int v = 0; v < lanes * RHS; v++) {
                fd[v] -= heads[v] * gd[v];
                gd[v] = (REAL)scale * row[v] - lows[v] * gd[v];
            }"""

_SPREAD = """
            for (int w = 0; w < lanes; w++)
                for (int r = 0; r < RHS; r++) {
                    const int v = w * SOME + r;
                    fd[v] -= heads[v] * gd[v];
                    gd[v] = (REAL)scale * row[w * inner_step + r * rhs_step] - lows[v] * gd[v];
                }"""

_CONDENSE_KERNEL = """
#define C(i) (at + (i) * c_row)
#define DIAGONAL(i) (b[C(i)]SHIFTED)
#define EXCESS(before, after, i) ((before) + (after) + b[C(i)]SHIFTED)
#define Y(i, r) (from + (i) * row_step + (r) * rhs_step)
    const int64_t number = begin + FL_ITEM;
    if (FL_ITEM < count) {
        const int64_t o = number / inner, s = number - o * inner;
        const int64_t at = o * c_outer + s * c_inner, from = y_first + o * outer_step + s * inner_step;
        const REAL shift = GIVEN;
        REAL fe = EXCESS(0, c[C(0)], 0), fc = c[C(0)], ge = EXCESS(a[C(1)], c[C(1)], 1), ga = a[C(1)], gb = DIAGONAL(1);
        REAL fd[SOME], gd[SOME];
        if (number == pinned) fe += DIAGONAL(0);
        for (int r = 0; r < RHS; r++) {
            fd[r] = (REAL)scale * y[Y(0, r)];
            gd[r] = (REAL)scale * y[Y(1, r)];
        }
        int64_t i = 2;
        for (; i + AHEAD <= rows; i += AHEAD) {
            REAL ahead[AHEAD][SOME];
            FL_UNROLL
            for (int j = 0; j < AHEAD; j++)
                for (int r = 0; r < RHS; r++) ahead[j][r] = y[Y(i + j, r)];
            FL_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                const int64_t k = i + j;STEP_AHEAD
            }
        }
        for (int64_t k = i; k < rows; k++) {STEP
        }
        const int64_t block = number / share;
        const int64_t within = number - block * share, base = ends_first + block * block_step, to = base + within;
        for (int r = 0; r < RHS; r++) {
            ends[base + within * RHS + r] = fd[r];
            ends[base + KINDS * share + within * RHS + r] = gd[r];
        }
        if (COEFFICIENTS) {
            ends[to + RHS * share] = a[C(0)];
            ends[to + (RHS + 1) * share] = fe - fc;
            ends[to + (RHS + 2) * share] = fc;
            ends[to + (KINDS + RHS) * share] = ga;
            ends[to + (KINDS + RHS + 1) * share] = gb;
            ends[to + (KINDS + RHS + 2) * share] = c[C(rows - 1)];
        }
    }
#undef C
#undef DIAGONAL
#undef EXCESS
#undef Y
"""

_CONDENSE_PLAIN = """
#define C(i) (start + (i) * c_row + w * c_inner)
#define DIAGONAL(i) (b[C(i)]SHIFTED)
#define EXCESS(before, after, i) ((before) + (after) + b[C(i)]SHIFTED)
#define Y(i, r) (from + (i) * row_step + w * inner_step + (r) * rhs_step)
    const int64_t end = begin + count, chunks = (inner + LANES - 1) / LANES, width = (inner + chunks - 1) / chunks;
    const int64_t first = begin / inner, units = ((end + inner - 1) / inner - first) * chunks;
#pragma omp parallel for schedule(static) num_threads(fl_threads(threads)) if (threads != 1)
    for (int64_t unit = 0; unit < units; unit++) {
        const int64_t o = first + unit / chunks, low_end = unit % chunks * width, high_end = low_end + width;
        int64_t s0 = begin - o * inner, s1 = end - o * inner;
        s0 = s0 > low_end ? s0 : low_end;
        s1 = s1 < high_end ? s1 : high_end;
        s1 = s1 < inner ? s1 : inner;
        const int lanes = (int)(s1 - s0);
        if (lanes <= 0) continue;
        const int64_t start = o * c_outer + s0 * c_inner, from = y_first + o * outer_step + s0 * inner_step;
        REAL fe[LANES], fc[LANES], ge[LANES], ga[LANES], gb[LANES], shifts[LANES];
        REAL fd[LANES * SOME], gd[LANES * SOME], heads[LANES * SOME], lows[LANES * SOME];
        for (int w = 0; w < lanes; w++) {
            const int64_t s = s0 + w;
            const REAL shift = GIVEN;
            shifts[w] = shift;
            (void)s;
            fe[w] = EXCESS(0, c[C(0)], 0) + (o * inner + s == pinned ? DIAGONAL(0) : 0);
            fc[w] = c[C(0)], ge[w] = EXCESS(a[C(1)], c[C(1)], 1), ga[w] = a[C(1)], gb[w] = DIAGONAL(1);
            for (int r = 0; r < RHS; r++) {
                fd[w * SOME + r] = (REAL)scale * y[Y(0, r)];
                gd[w * SOME + r] = (REAL)scale * y[Y(1, r)];
            }
        }
        for (int64_t k = 2; k < rows; k++) {
#pragma omp simd
            for (int w = 0; w < lanes; w++) {
                const REAL shift = shifts[w];
                (void)shift;
                const REAL turn = 1 / gb[w], low = a[C(k)] * turn, head = fc[w] * turn, tail = c[C(k - 1)];
                fe[w] -= head * ge[w];
                const REAL after = k < rows - 1 ? c[C(k)] : 0;
                ge[w] = EXCESS(a[C(k)], after, k) - low * ge[w];
                fc[w] = -head * tail;
                ga[w] = -low * ga[w];
                gb[w] = ge[w] - ga[w] - after;
                for (int r = 0; r < RHS; r++) heads[w * SOME + r] = head, lows[w * SOME + r] = low;
            }
            const REAL *const row = y + from + k * row_step;
            PREFETCH
            VALUES
        }
        for (int w = 0; w < lanes; w++) {
            const int64_t number = o * inner + s0 + w, block = number / share;
            const int64_t within = number - block * share, base = ends_first + block * block_step, to = base + within;
            for (int r = 0; r < RHS; r++) {
                ends[base + within * RHS + r] = fd[w * SOME + r];
                ends[base + KINDS * share + within * RHS + r] = gd[w * SOME + r];
            }
            if (COEFFICIENTS) {
                ends[to + RHS * share] = a[C(0)];
                ends[to + (RHS + 1) * share] = fe[w] - fc[w];
                ends[to + (RHS + 2) * share] = fc[w];
                ends[to + (KINDS + RHS) * share] = ga[w];
                ends[to + (KINDS + RHS + 1) * share] = gb[w];
                ends[to + (KINDS + RHS + 2) * share] = c[C(rows - 1)];
            }
        }
    }
#undef C
#undef DIAGONAL
#undef EXCESS
#undef Y
"""

_JOIN = """
        const int64_t o = number / inner, s = number - o * inner, at = o * c_outer + s * c_inner;
        const int64_t from = y_first + o * outer_step + s * inner_step;
        const int64_t block = number / share, place = block * block_step + (number - block * share) * RHS;
        const int64_t last = rows - 1;
        for (int r = 0; r < RHS; r++) {
            if (left) y[from + r * rhs_step] -= a[at] * near[left_first + place + r] * (REAL)inverse;
            if (right)
                y[from + last * row_step + r * rhs_step] -=
                    c[at + last * c_row] * near[right_first + place + r] * (REAL)inverse;
        }"""

_JOIN_KERNEL = """
    const int64_t number = FL_ITEM;
    if (number < systems) {STATEMENTS
    }
"""

_JOIN_PLAIN = """
#pragma omp parallel for schedule(static) num_threads(fl_threads(threads)) if (threads != 1 && systems > 4096)
    for (int64_t number = 0; number < systems; number++) {STATEMENTS
    }
"""
