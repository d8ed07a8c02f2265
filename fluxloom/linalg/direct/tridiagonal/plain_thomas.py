"""Thomas's algorithm as a plain function whose vectors run over systems.

A thread takes as many systems through all rows together as leave ``c'`` and ``y'`` of all rows in the cache of a core:
then a, b, c and y are read from memory once and the solution is written once, five words a row in place of nine. Where
neighbours in memory are rows of one system, vectors gather the rows of several. Where they are of different systems,
lines of memory are asked for some rows ahead, and many solutions are stored past the caches in whole lines, so that
chunks begin where lines of the solution do. Systems that share their matrix share ``c'`` and the reciprocals of the
pivots, which are computed once a call.

A pivot that vanishes makes all later ``y'`` of its system infinite or not a number, also where ``a`` or ``y`` is zero;
so the last one tells, and rows need no tests.

The equations, and those of periodic systems, are in `fluxloom.linalg.direct.tridiagonal.kernels_thomas`.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.primitive import Function
from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines, parameters
from fluxloom.linalg.direct.tridiagonal.kernels_text import bordered, fill
from fluxloom.linalg.direct.tridiagonal.plain_text import chunked, direct, macros

__all__ = ["PlainThomas"]

_CACHE = 1 << 19
"""Bytes that the rows of a chunk may fill, where nobody says more."""

_WIDEST, _NARROWEST = 256, 8
_FETCHED, _FETCHED_LANES = 8, 1024
"""Rows, and systems in them together, that are asked for ahead, at least: processors do not guess steps from one row to
the next where these are long. They come into the second cache: in the first one rows that lie a power of two apart have
too few places."""

_STREAMED = 1 << 25
"""Bytes of all solutions from which on they are stored past the caches: nothing of so much would be there later."""

_LISTED_WIDEST = 16
"""Systems whose rows lie far apart and are gathered: so many that their lines of memory stay in the first cache."""


_HELPERS = """
#define CP(i, l) held[(int64_t)(i) * ($planes * W) + (l)]
#define LEFT(i, l) held[(int64_t)(i) * ($planes * W) + W + (l)]
#define D(i, l, r) held[(int64_t)(i) * ($planes * W) + $first * W + $place]
"""

_STORE = """
#if defined(__AVX__)
#include <immintrin.h>
#endif
/* Stores values; those that fill whole lines of a cache do not pass through it, and need not be read before. */
AI void fl_store(REAL *restrict to, const REAL *restrict from, int64_t count) {
#if defined(__AVX__)
    for (; count > 0 && (uintptr_t)to % 64; count--) *to++ = *from++;
    for (; count >= $line; count -= $line, to += $line, from += $line) {
#if defined(__AVX512F__)
        _mm512_stream_$kind(to, _mm512_loadu_$kind(from));
#else
        _mm256_stream_$kind(to, _mm256_loadu_$kind(from));
        _mm256_stream_$kind(to + $line / 2, _mm256_loadu_$kind(from + $line / 2));
#endif
    }
#endif
    for (; count > 0; count--) *to++ = *from++;
}
"""

_TABLES = """
    /* What depends on the matrix alone: c' and the reciprocals of the pivots. */
    REAL *const table_cp = work, *const table_inverse = work + rows;
    {
        const int64_t m = rows - $border;
        REAL before = 0;
        for (int64_t i = 0; i < m; i++) {
            const int64_t l = 0; (void)l;
            const REAL low = $low, inverse = 1 / ($main - low * before);
            before = $high * inverse;
            table_cp[i] = before; table_inverse[i] = inverse;
        }
    }
"""

_FORWARD = """
        {
            const int64_t i = 0;
            const REAL last = m == 1;
            (void)last;
            #pragma omp simd
            for (int l = 0; l < lanes; l++) {
$first
            }
        }
        for (int64_t i = 1; i < m; i++) {
            const REAL last = i == m - 1;
            (void)last;
            int done = 0;
$ahead
            #pragma omp simd
            for (int l = done; l < lanes; l++) {
$other
            }
        }
"""

_AHEAD = """            const int64_t far_row = i + $rows < m ? i + $rows : m - 1;
            for (; done + $block <= lanes; done += $block) {
                for (int l = done; l < done + $block; l += $line) {
$fetches
                }
                #pragma omp simd$together
                for (int l = done; l < done + $block; l++) {
$other
                }
            }"""

_SOLVE = """                const REAL low = $low, inverse = 1 / ($main - low * ($cp)), cp = $high * inverse;
                CP(i, l) = cp;
"""

_LOOKUP = """                const REAL low = $low, inverse = table_inverse[i], cp = table_cp[i];
                CP(i, l) = cp;
"""

_RHS = """                const REAL d{r} = (factor * y[Y(l, i, {r})] - low * ({d})) * inverse;
                D(i, l, {r}) = d{r};
"""

_ROW = """                const REAL left = -low * ($left) * inverse, edge = far[l] + last * ends_low[l];
                LEFT(i, l) = left;
                corner[l] -= edge * (left + last * cp);
                far[l] = -edge * cp;
"""

_ENDS = "                ends[{r}][l] -= edge * d{r};\n"

_OPEN = """        REAL far[W], corner[W], whole[W], ends_low[W], ends[$count][W];
        for (int l = 0; l < lanes; l++) {
            const int64_t i = m;
            const REAL twice = 1;
            ends_low[l] = a[K(l, i)]; corner[l] = $main; far[l] = c[K(l, i)];
            whole[l] = number + l == pinned ? (REAL)0 : corner[l];
            for (int r = 0; r < $count; r++) ends[r][l] = factor * y[Y(l, i, r)];
            (void)twice;
        }
"""

_CLOSE = """        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < $count; r++) {
                ends[r][l] /= corner[l];
                if (!FINITE(ends[r][l]) || LOST(corner[l], whole[l])) TELL(l);
                x[X(l, m, r)] = ends[r][l];
            }
"""

_TOLD = """        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < $count; r++) if (!FINITE(D(m - 1, l, r))) TELL(l);
"""

_BACKWARD = """
        {
            const int64_t i = m - 1;
            for (int l = 0; l < lanes; l++) {
$first
            }
        }
        for (int64_t i = m - 2; i >= 0; i--) {
            #pragma omp simd$together
            for (int l = 0; l < lanes; l++) {
$other
            }
$stored
        }
"""

_UNKNOWN = """                const REAL u{r} = D(i, l, {r}){after}{left};
                D(i, l, {r}) = u{r};
"""

_STORED = "                x[X(l, i, {r})] = u{r};\n"

_STREAM = "            fl_store(x + X(0, i, 0), &D(i, 0, 0), lanes * {count});"

_CHUNK = """
        const int64_t m = rows - $border;
        const int64_t across = c_inner;
        const REAL factor = (REAL)scale;
        (void)across;
        REAL doubled[W];
        for (int l = 0; l < W; l++) doubled[l] = number + l == pinned ? (REAL)2 : (REAL)1;
        (void)doubled;
$open
$forward
$close
$backward
$fence
"""


@dataclass(frozen=True)
class PlainThomas:
    """Thomas's algorithm for chunks of systems.

    Attributes
    ----------
    threads
        That share the systems.
    cache
        Bytes that the rows of a chunk may fill: most of the second cache of a core.
    """

    threads: int = 1
    cache: int = _CACHE
    name: str = "thomas"

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the function; the tables and all rows of a chunk of every thread are in working memory."""
        border, width, streams = bordered(form, lines), self.width(form, lines), _streams(form, lines)
        low, main, high = _diagonals(form, lines)
        if not form.periodic:
            low, high = f"(i ? {low} : (REAL)0)", f"(i < m - 1 ? {high} : (REAL)0)"
        shared = form.coefficients == "shared"
        tables = -(-2 * lines.rows // 16) * 16 if shared else 0  # what follows begins with a line of the cache
        each = (1 + border + form.rhs) * lines.rows * width
        call = fill(
            _CHUNK, border=int(border), forward=_forward(form, lines, width),
            open=fill(_OPEN, main=main, count=form.rhs) if border else "",
            close=fill(_CLOSE if border else _TOLD, count=form.rhs),
            backward=_backward(form, lines, border), fence="        fl_fence();" if streams else "",
        )  # fmt: skip
        alone = main.replace("* twice", "")
        body = chunked(
            lines, call, width=width, threads=self.threads, each=each, tables=tables, skew=_skew(form, lines),
            tables_text=fill(_TABLES, border=int(border), low=low, main=alone, high=high) if shared else "",
        )  # fmt: skip
        pairs = lines.rhs_step == 1 and form.rhs > 1
        place = f"(l) * {form.rhs} + (r)" if pairs else "(r) * W + (l)"
        words = fill(_HELPERS, planes=1 + border + form.rhs, first=1 + border, place=place)
        if streams:
            words += fill(_STORE, line=64 // form.size, kind="pd" if form.real == "double" else "ps")
        function = Function("fl_thomas", parameters(form), body)
        return Code((function,), (1,), macros(form, lines, width) + words, tables + each * self.threads)

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return an empty string: every system can be solved this way."""
        return ""

    def width(self, form: Form, lines: Lines) -> int:
        """Return the systems of a chunk: a multiple of 8, as many as the cache holds, some for every thread."""
        row = (1 + bordered(form, lines) + form.rhs) * form.size
        systems, widest = (lines.inner, _WIDEST) if direct(lines) else (lines.systems, _LISTED_WIDEST)
        share = -(-systems * (lines.outer if direct(lines) else 1) // self.threads)
        found = min(widest, self.cache // (lines.rows * row), share, systems)
        return max(_NARROWEST, found // _NARROWEST * _NARROWEST)


def _diagonals(form: Form, lines: Lines) -> tuple[str, str, str]:
    """Return the expressions of the diagonals of row ``i`` of lane ``l``; ``twice`` is that of a pinned system."""
    main = "b[K(l, i)]" + (" + mass[i] * (SHIFT(l))" if form.coefficients == "shifted" else "")
    if form.periodic and lines.rows == 1:
        return "(REAL)0", f"(a[K(l, i)] + ({main}) * twice + c[K(l, i)])", "(REAL)0"
    return "a[K(l, i)]", f"(({main}) * twice)", "c[K(l, i)]"


def _row(form: Form, lines: Lines, solve: str, first: bool) -> str:
    """Return the elimination of a row; before the first one there is none."""
    low, main, high = _diagonals(form, lines)
    low = "(REAL)0" if first and not form.periodic else low
    main = main.replace("twice", "doubled[l]") if first else main.replace(" * twice", "")
    found = fill(solve, low=low, main=main, high=high, cp="(REAL)0" if first else "CP(i - 1, l)")
    found += "".join(_RHS.format(r=r, d="(REAL)0" if first else f"D(i - 1, l, {r})") for r in range(form.rhs))
    if bordered(form, lines):
        found += fill(_ROW, left="(REAL)-1" if first else "LEFT(i - 1, l)")
        found += "".join(_ENDS.format(r=r) for r in range(form.rhs))
    return found


def _forward(form: Form, lines: Lines, width: int) -> str:
    """Return the elimination, once for each way in which the matrices of neighbours may lie."""

    def rows(solve: str) -> str:
        first, other = (_row(form, lines, solve, place) for place in (True, False))
        ahead = _ahead(form, lines, other, width)
        return fill(_FORWARD, first=first, other=other, ahead=ahead)

    if form.coefficients == "shared":
        pinned = "pinned >= number && pinned < number + lanes"
        return f"        if ({pinned}) {{{rows(_SOLVE)}        }} else {{{rows(_LOOKUP)}        }}"
    if form.coefficients == "each" and direct(lines):
        one = "const int64_t across = 1;"
        return f"        if (c_inner == 1) {{ {one}{rows(_SOLVE)}        }} else {{{rows(_SOLVE)}        }}"
    return rows(_SOLVE)


def _backward(form: Form, lines: Lines, border: bool) -> str:
    """Return the substitution; behind the last row stands nothing, or the unknown that was kept apart."""
    streams = _streams(form, lines)

    def rows(last: bool) -> str:
        found = "" if last else "                const REAL cp = CP(i, l);\n"
        for r in range(form.rhs):
            after = f" - cp * D(i + 1, l, {r})"
            if last:
                after = f" - CP(i, l) * ends[{r}][l]" if border else ""
            found += _UNKNOWN.format(r=r, after=after, left=f" - LEFT(i, l) * ends[{r}][l]" if border else "")
            found += "" if streams and not last else _STORED.format(r=r)
        return found

    stored = _STREAM.format(count=form.rhs) if streams else ""
    together = _together(form) if direct(lines) else ""
    return fill(_BACKWARD, first=rows(True), other=rows(False), stored=stored, together=together)


def _streams(form: Form, lines: Lines) -> bool:
    """Whether solutions are stored past the caches: many, whose neighbours in memory are of different systems."""
    dense = lines.inner_step == form.rhs and (form.rhs == 1 or lines.rhs_step == 1)
    return direct(lines) and dense and lines.rows * lines.systems * form.rhs * form.size >= _STREAMED


def _together(form: Form) -> str:
    """Return the wish for vectors of a whole line of memory: compilers take half of it where they may choose."""
    return f" simdlen({64 // form.size})"


def _skew(form: Form, lines: Lines) -> str:
    """Return by how much the first chunk is shorter, so that solutions of all others begin with a line of a cache."""
    if not _streams(form, lines):
        return "0"
    each = form.size * form.rhs
    return f"(int64_t)((uintptr_t)(x + x_first) % 64 / {each})"


def _ahead(form: Form, lines: Lines, other: str, width: int) -> str:
    """Return the rows with requests for those ahead, where neighbours in memory are of different systems."""
    if not direct(lines):
        return ""
    line, rows = max(1, 64 // (form.size * abs(lines.inner_step))), max(_FETCHED, _FETCHED_LANES // width)
    names = ["a + K(l, far_row)", "b + K(l, far_row)", "c + K(l, far_row)"]
    sides = range(1 if lines.rhs_step == 1 else form.rhs)
    wanted = [f"y + Y(l, far_row, {r})" for r in sides] + (names if form.coefficients == "each" else [])
    fetches = "\n".join(f"                    __builtin_prefetch({one}, 0, 2);" for one in wanted)
    block = max(line, _NARROWEST)
    return fill(
        _AHEAD, rows=rows, line=line, block=block, together=_together(form), fetches=fetches, other=other
    )  # fmt: skip
