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

from fluxloom.codegen.bodies import over
from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import fill

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
    packed = lines.inner_step == form.rhs and (form.rhs == 1 or lines.rhs_step == 1)
    shifted = form.coefficients == "shifted"
    words = {
        "real": form.real, "rhs": rhs, "some": max(1, rhs), "kinds": rhs + 3 * coefficients, "lanes": LANES,
        "ahead": _AHEAD, "shifted": " + mass[i] * shift" if shifted else "", "coefficients": int(coefficients),
        "given": "inner_shift[s] + outer_shift[o]" if shifted else "0",
        "prefetch": _PREFETCH if packed and rhs else "",
        "values": (_PACKED if packed else _SPREAD) if rhs else "(void)row;",
        **(_ITEM if items else _LANE), **_PARTS,
    }  # fmt: skip
    text = _DEFINES + (_CONDENSE_KERNEL if items else _CONDENSE_PLAIN) + _UNDEFINED
    for _ in range(3):  # words stand in words
        text = fill(text, **words)
    for name, value in zip(_STEPS, (lines.inner_step, lines.rhs_step, c_inner), strict=True):
        if value in (0, 1, 2):  # a compiler sees what lies together
            text = text.replace(f"* {name}", f"* {value}")
    return Function("fl_condense", parameters, text, BLOCK if items else 1)


def join_ends(form: Form, *, items: bool) -> Function:
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
    text = over({"number": "systems"}, fill(_JOIN, real=form.real, rhs=form.rhs), items=items, shared="systems > 4096")
    return Function("fl_join_ends", parameters, text, BLOCK if items else 1)


_ITEM = {"at": "at", "from": "from", "l": "", "r": "r"}
_LANE = {"at": "start + w * c_inner", "from": "from + w * inner_step", "l": "[w]", "r": "w * $some + r"}
"""Where values of a system are: one an item has, or that of a lane."""

_DEFINES = """
#define C(i) ($at + (i) * c_row)
#define DIAGONAL(i) (b[C(i)]$shifted)
#define EXCESS(before, after, i) ((before) + (after) + b[C(i)]$shifted)
#define Y(i, r) ($from + (i) * row_step + (r) * rhs_step)
"""

_UNDEFINED = """
#undef C
#undef DIAGONAL
#undef EXCESS
#undef Y
"""

_PARTS = {
    "first": """
            fe$l = EXCESS(0, c[C(0)], 0), fc$l = c[C(0)], ge$l = EXCESS(a[C(1)], c[C(1)], 1), ga$l = a[C(1)];
            gb$l = DIAGONAL(1);
            if (number == pinned) fe$l += DIAGONAL(0);
            for (int r = 0; r < $rhs; r++) {
                fd[$r] = ($real)scale * y[Y(0, r)];
                gd[$r] = ($real)scale * y[Y(1, r)];
            }""",
    "next": """
                const $real turn = 1 / gb$l, low = a[C(k)] * turn, head = fc$l * turn, tail = c[C(k - 1)];
                fe$l -= head * ge$l;
                const $real after = k < rows - 1 ? c[C(k)] : 0;
                ge$l = EXCESS(a[C(k)], after, k) - low * ge$l;
                fc$l = -head * tail;
                ga$l = -low * ga$l;
                gb$l = ge$l - ga$l - after;""",
    "last": """
            const int64_t block = number / share, within = number - block * share;
            const int64_t base = ends_first + block * block_step, to = base + within;
            for (int r = 0; r < $rhs; r++) {
                ends[base + within * $rhs + r] = fd[$r];
                ends[base + $kinds * share + within * $rhs + r] = gd[$r];
            }
            if ($coefficients) {
                ends[to + $rhs * share] = a[C(0)];
                ends[to + ($rhs + 1) * share] = fe$l - fc$l;
                ends[to + ($rhs + 2) * share] = fc$l;
                ends[to + ($kinds + $rhs) * share] = ga$l;
                ends[to + ($kinds + $rhs + 1) * share] = gb$l;
                ends[to + ($kinds + $rhs + 2) * share] = c[C(rows - 1)];
            }""",
}
"""What is done with the first two rows of a system, with a row ``k`` but for right-hand sides, and in the end."""

_PREFETCH = "if (k + 1 < rows) fl_ahead(row + row_step, (int64_t)lanes * $rhs * (int64_t)sizeof($real));"

_PACKED = """
#pragma omp simd
            for (int v = 0; v < lanes * $rhs; v++) {
                fd[v] -= heads[v] * gd[v];
                gd[v] = ($real)scale * row[v] - lows[v] * gd[v];
            }"""

_SPREAD = """
            for (int w = 0; w < lanes; w++)
                for (int r = 0; r < $rhs; r++) {
                    const int v = $r;
                    fd[v] -= heads[v] * gd[v];
                    gd[v] = ($real)scale * row[w * inner_step + r * rhs_step] - lows[v] * gd[v];
                }"""

_CONDENSE_KERNEL = """
    const int64_t number = begin + FL_ITEM;
    if (FL_ITEM < count) {
        const int64_t o = number / inner, s = number - o * inner;
        const int64_t at = o * c_outer + s * c_inner, from = y_first + o * outer_step + s * inner_step;
        const $real shift = $given;
        $real fe, fc, ge, ga, gb, fd[$some], gd[$some];
        $first
        int64_t i = 2;
        for (; i + $ahead <= rows; i += $ahead) {
            $real ahead[$ahead][$some];
            FL_UNROLL
            for (int j = 0; j < $ahead; j++)
                for (int r = 0; r < $rhs; r++) ahead[j][r] = y[Y(i + j, r)];
            FL_UNROLL
            for (int j = 0; j < $ahead; j++) {
                const int64_t k = i + j;
                $next
                for (int r = 0; r < $rhs; r++) {
                    fd[r] -= head * gd[r];
                    gd[r] = ($real)scale * ahead[j][r] - low * gd[r];
                }
            }
        }
        for (int64_t k = i; k < rows; k++) {
            $next
            for (int r = 0; r < $rhs; r++) {
                fd[r] -= head * gd[r];
                gd[r] = ($real)scale * y[Y(k, r)] - low * gd[r];
            }
        }
        $last
    }
"""

_CONDENSE_PLAIN = """
    const int64_t end = begin + count, chunks = (inner + $lanes - 1) / $lanes, width = (inner + chunks - 1) / chunks;
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
        $real fe[$lanes], fc[$lanes], ge[$lanes], ga[$lanes], gb[$lanes], shifts[$lanes];
        $real fd[$lanes * $some], gd[$lanes * $some], heads[$lanes * $some], lows[$lanes * $some];
        for (int w = 0; w < lanes; w++) {
            const int64_t s = s0 + w, number = o * inner + s;
            const $real shift = $given;
            shifts[w] = shift;
            $first
        }
        for (int64_t k = 2; k < rows; k++) {
#pragma omp simd
            for (int w = 0; w < lanes; w++) {
                const $real shift = shifts[w];
                (void)shift;
                $next
                for (int r = 0; r < $rhs; r++) heads[$r] = head, lows[$r] = low;
            }
            const $real *const row = y + from + k * row_step;
            $prefetch
            $values
        }
        for (int w = 0; w < lanes; w++) {
            const int64_t number = o * inner + s0 + w;
            $last
        }
    }
"""

_JOIN = """
        const int64_t o = number / inner, s = number - o * inner, at = o * c_outer + s * c_inner;
        const int64_t from = y_first + o * outer_step + s * inner_step;
        const int64_t block = number / share, place = block * block_step + (number - block * share) * $rhs;
        const int64_t last = rows - 1;
        for (int r = 0; r < $rhs; r++) {
            if (left) y[from + r * rhs_step] -= a[at] * near[left_first + place + r] * ($real)inverse;
            if (right)
                y[from + last * row_step + r * rhs_step] -=
                    c[at + last * c_row] * near[right_first + place + r] * ($real)inverse;
        }"""
