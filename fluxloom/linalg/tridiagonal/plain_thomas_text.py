"""The statements of Thomas's algorithm for a chunk of systems, in plain C; `plain_thomas` puts them together."""

from __future__ import annotations

__all__ = [
    "AHEAD",
    "BACKWARD",
    "CHUNK",
    "CLOSE",
    "ENDS",
    "FORWARD",
    "HELPERS",
    "LOOKUP",
    "OPEN",
    "RHS",
    "ROW",
    "SOLVE",
    "STORE",
    "STORED",
    "STREAM",
    "TABLES",
    "TOLD",
    "UNKNOWN",
]

HELPERS = """
#define CP(i, l) held[(int64_t)(i) * ($planes * W) + (l)]
#define LEFT(i, l) held[(int64_t)(i) * ($planes * W) + W + (l)]
#define D(i, l, r) held[(int64_t)(i) * ($planes * W) + $first * W + $place]
"""

STORE = """
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

TABLES = """
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

FORWARD = """
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

AHEAD = """            const int64_t far_row = i + $rows < m ? i + $rows : m - 1;
            for (; done + $block <= lanes; done += $block) {
                for (int l = done; l < done + $block; l += $line) {
$fetches
                }
                #pragma omp simd$together
                for (int l = done; l < done + $block; l++) {
$other
                }
            }"""

SOLVE = """                const REAL low = $low, inverse = 1 / ($main - low * ($cp)), cp = $high * inverse;
                CP(i, l) = cp;
"""

LOOKUP = """                const REAL low = $low, inverse = table_inverse[i], cp = table_cp[i];
                CP(i, l) = cp;
"""

RHS = """                const REAL d{r} = (factor * y[Y(l, i, {r})] - low * ({d})) * inverse;
                D(i, l, {r}) = d{r};
"""

ROW = """                const REAL left = -low * ($left) * inverse, edge = far[l] + last * ends_low[l];
                LEFT(i, l) = left;
                corner[l] -= edge * (left + last * cp);
                far[l] = -edge * cp;
"""

ENDS = "                ends[{r}][l] -= edge * d{r};\n"

OPEN = """        REAL far[W], corner[W], whole[W], ends_low[W], ends[$count][W];
        for (int l = 0; l < lanes; l++) {
            const int64_t i = m;
            const REAL twice = 1;
            ends_low[l] = a[K(l, i)]; corner[l] = $main; far[l] = c[K(l, i)];
            whole[l] = number + l == pinned ? (REAL)0 : corner[l];
            for (int r = 0; r < $count; r++) ends[r][l] = factor * y[Y(l, i, r)];
            (void)twice;
        }
"""

CLOSE = """        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < $count; r++) {
                ends[r][l] /= corner[l];
                if (!FINITE(ends[r][l]) || LOST(corner[l], whole[l])) TELL(l);
                x[X(l, m, r)] = ends[r][l];
            }
"""

TOLD = """        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < $count; r++) if (!FINITE(D(m - 1, l, r))) TELL(l);
"""

BACKWARD = """
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

UNKNOWN = """                const REAL u{r} = D(i, l, {r}){after}{left};
                D(i, l, {r}) = u{r};
"""

STORED = "                x[X(l, i, {r})] = u{r};\n"

STREAM = "            fl_store(x + X(0, i, 0), &D(i, 0, 0), lanes * {count});"

CHUNK = """
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
