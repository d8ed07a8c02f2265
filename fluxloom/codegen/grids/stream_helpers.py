"""Functions of C that move lines of neighbouring numbers: past the caches, round the end of a row, converted."""

from __future__ import annotations

from fluxloom.core.dtypes import FLOAT16, Scalar

__all__ = ["edge_source", "half_source", "line_source"]


def line_source() -> str:
    """Return the store of one aligned line of 64 bytes that passes the caches, where the machine has one."""
    return """#ifndef FL_LINE
#define FL_LINE
AI void fl_line(void *to, const void *from) {
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i *)to, _mm512_load_si512((const __m512i *)from));
#elif defined(__AVX__)
    _mm256_stream_si256((__m256i *)to, _mm256_load_si256((const __m256i *)from));
    _mm256_stream_si256((__m256i *)to + 1, _mm256_load_si256((const __m256i *)from + 1));
#else
    memcpy(to, from, 64);
#endif
}
#endif
"""


def half_source() -> str:
    """Return the conversions of a line of half precision; both are those of the language (to nearest, ties to even)."""
    return """#ifndef FL_HALVES
#define FL_HALVES
AI void fl_widen(float *restrict to, const _Float16 *restrict from, const int n) {
#if defined(__AVX512F__)
    for (int k = 0; k < n; k += 16)
        _mm512_storeu_ps(to + k, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + k))));
#elif defined(__F16C__)
    for (int k = 0; k < n; k += 8)
        _mm256_storeu_ps(to + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + k))));
#else
    for (int k = 0; k < n; k++) to[k] = (float)from[k];
#endif
}
AI void fl_narrow(_Float16 *restrict to, const float *restrict from, const int n) {
#if defined(__AVX512F__)
    for (int k = 0; k < n; k += 16)
        _mm256_storeu_si256((__m256i *)(to + k), _mm512_cvtps_ph(_mm512_loadu_ps(from + k), 0));
#elif defined(__F16C__)
    for (int k = 0; k < n; k += 8)
        _mm_storeu_si128((__m128i *)(to + k), _mm256_cvtps_ph(_mm256_loadu_ps(from + k), 0));
#else
    for (int k = 0; k < n; k++) to[k] = (_Float16)from[k];
#endif
}
#endif
"""


def edge_source(scalar: Scalar, width: int) -> str:
    """Return the loads and stores of elements near the ends of a row.

    ``fl_edge`` returns where ``width`` numbers from ``place`` on are, of which ``count`` are wanted: in the row itself,
    or behind the first third of ``e``. ``fl_leave`` stores ``count`` numbers. In a row that is ``joined`` the first
    number follows the last one; others go on beyond their ends.
    """
    c, name = scalar.c, f"{scalar.name}_{width}"
    return f"""#ifndef FL_EDGE_{name}
#define FL_EDGE_{name}
AI const {c} *fl_edge_{name}({c} *restrict e, const {c} *restrict row, const int64_t place, const int64_t count,
                             const int64_t n, const int joined) {{
    if ((place >= 0 || !joined) && place + {width} <= n) return row + place;
    {c} *const first = e + {width};
    if (n < {width} || (place < 0 && !joined)) {{
        for (int64_t k = 0; k < {width}; k++) {{
            const int64_t i = place + (k < count ? k : count - 1);
            first[k] = row[joined ? fl_wrap(i, n) : i];
        }}
    }} else if (place < 0) {{
        memcpy(first - (place < -{width} ? -{width} : place), row, {width} * sizeof({c}));
        for (int64_t k = 0; k < {width} && k < -place; k++) first[k] = row[n + place + k];
    }} else {{
        const int64_t rest = n - place < 0 ? 0 : n - place;
        memcpy(first - ({width} - rest), row + n - {width}, {width} * sizeof({c}));
        for (int64_t k = rest; k < {width}; k++)
            first[k] = k < count ? row[joined ? place + k - n : place + k] : first[0];
    }}
    return first;
}}
AI void fl_leave_{name}({c} *restrict row, const {c} *restrict b, const int64_t place, const int64_t count,
                        const int64_t n, const int joined) {{
    if (count == {width} && place >= 0 && place + {width} <= n) memcpy(row + place, b, {width} * sizeof({c}));
    else for (int64_t k = 0; k < count; k++) row[joined ? fl_wrap(place + k, n) : place + k] = b[k];
}}
#endif
"""


def helpers(scalars: list[Scalar], width: int) -> str:
    """Return every function that a loop with some types of numbers calls."""
    halves = [half_source()] if FLOAT16 in scalars else []
    return "".join([line_source(), *halves, *(edge_source(s, width) for s in scalars)])
