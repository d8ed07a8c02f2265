/* pull: grid, line by line */
typedef struct {
    int64_t n;
    int64_t threads;
    float * d0;
    int64_t s0;
    float * d1;
    int64_t s1;
    int64_t n0;
    int64_t n1;
    int64_t n2;
} fl_loop_pull_args;

#ifndef FL_LINE
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
#ifndef FL_EDGE_float32_16
#define FL_EDGE_float32_16
AI const float *fl_edge_float32_16(float *restrict e, const float *restrict row, const int64_t place, const int64_t count,
                             const int64_t n, const int joined) {
    if ((place >= 0 || !joined) && place + 16 <= n) return row + place;
    float *const first = e + 16;
    if (n < 16 || (place < 0 && !joined)) {
        for (int64_t k = 0; k < 16; k++) {
            const int64_t i = place + (k < count ? k : count - 1);
            first[k] = row[joined ? fl_wrap(i, n) : i];
        }
    } else if (place < 0) {
        memcpy(first - (place < -16 ? -16 : place), row, 16 * sizeof(float));
        for (int64_t k = 0; k < 16 && k < -place; k++) first[k] = row[n + place + k];
    } else {
        const int64_t rest = n - place < 0 ? 0 : n - place;
        memcpy(first - (16 - rest), row + n - 16, 16 * sizeof(float));
        for (int64_t k = rest; k < 16; k++)
            first[k] = k < count ? row[joined ? place + k - n : place + k] : first[0];
    }
    return first;
}
AI void fl_leave_float32_16(float *restrict row, const float *restrict b, const int64_t place, const int64_t count,
                        const int64_t n, const int joined) {
    if (count == 16 && place >= 0 && place + 16 <= n) memcpy(row + place, b, 16 * sizeof(float));
    else for (int64_t k = 0; k < count; k++) row[joined ? fl_wrap(place + k, n) : place + k] = b[k];
}
#endif

AI void fl_loop_pull_pack(const fl_loop_pull_args *restrict A, const float *restrict i0, const float *restrict i1, float *restrict o0, float *restrict o1) {
#pragma omp simd simdlen(8)
    for (int x = 0; x < 16; x++) { /* lanes 8: pull */
        float v_v_0_0;
        float v_v_0_1;
        v_v_0_0 = (i0[x] + i1[x]);
        v_v_0_1 = (i0[x] - i1[x]);
        o0[x] = v_v_0_0;
        o1[x] = v_v_0_1;
    } /* end lanes 8: pull */
}

static __attribute__((noinline)) void fl_loop_pull_inner(const fl_loop_pull_args *restrict A, const int64_t begin, const int64_t end, const int64_t row0, const int64_t row1, const int64_t row2) {
    const float *const restrict p0 = A->d0 + (0) * A->s0 + (row1) + (1);
    const float *const restrict p1 = A->d0 + (1) * A->s0 + (row2) + (-1);
    float *const restrict q0 = A->d1 + (0) * A->s1 + (row0) + (0);
    float *const restrict q1 = A->d1 + (1) * A->s1 + (row0) + (0);
    for (int64_t x = begin; x < end; x += 16) {
        __builtin_prefetch(p0 + x + 128);
        __builtin_prefetch(p1 + x + 128);
        float b0[16] FL_ALIGN;
        float b1[16] FL_ALIGN;
        fl_loop_pull_pack(A, p0 + x, p1 + x, b0, b1);
        fl_line((char *)(q0 + x) + 0, (const char *)b0 + 0);
        fl_line((char *)(q1 + x) + 0, (const char *)b1 + 0);
    }
}

static __attribute__((noinline)) void fl_loop_pull_edge(const fl_loop_pull_args *restrict A, const int64_t x, const int64_t count, const int64_t row0, const int64_t row1, const int64_t row2) {
        float b0[16] FL_ALIGN;
        float b1[16] FL_ALIGN;
    float *const restrict t0 = A->d1 + (0) * A->s1 + (row0) + (0);
    float *const restrict t1 = A->d1 + (1) * A->s1 + (row0) + (0);
    const float *const restrict s0 = A->d0 + (0) * A->s0 + (row1) + (1);
    const float *const restrict s1 = A->d0 + (1) * A->s0 + (row2) + (-1);
        __builtin_prefetch(s0 + x + 128);
        __builtin_prefetch(s1 + x + 128);
    float ep0[48] FL_ALIGN; const float *const p0 = fl_edge_float32_16(ep0, A->d0 + (0) * A->s0 + (row1), x + (1), count, A->n2, 1);
    for (int64_t k = 0; k < count; k++) if (x + k >= A->n2 - 1) ep0[16 + k] = (A->d0 + (1) * A->s0 + (row0))[x + k];
    float ep1[48] FL_ALIGN; const float *const p1 = fl_edge_float32_16(ep1, A->d0 + (1) * A->s0 + (row2), x + (-1), count, A->n2, 1);
    for (int64_t k = 0; k < count; k++) if (x + k < 1) ep1[16 + k] = (A->d0 + (0) * A->s0 + (row0))[x + k];
        fl_loop_pull_pack(A, p0, p1, b0, b1);
        if (count == 16) { fl_line((char *)(t0 + x) + 0, (const char *)b0 + 0); } else fl_leave_float32_16(A->d1 + (0) * A->s1 + (row0), b0, x + (0), count, A->n2, 0);
        if (count == 16) { fl_line((char *)(t1 + x) + 0, (const char *)b1 + 0); } else fl_leave_float32_16(A->d1 + (1) * A->s1 + (row0), b1, x + (0), count, A->n2, 0);
}

void fl_loop_pull(const int64_t *S) {
    const fl_loop_pull_args *const A = (const fl_loop_pull_args *)S;
    const int64_t rows = A->n0 * A->n1, nx = A->n2;
#pragma omp parallel num_threads(fl_threads(A->threads)) if (A->threads != 1)
    {
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const int64_t z = (0 + r) / A->n1, y = (0 + r) % A->n1;
        const int64_t row0 = ((z + 0) * (A->n1 + 0) + (y + 0)) * (A->n2 + 0) + 0;
        const int64_t row1 = ((z + 0) * (A->n1 + 0) + (fl_wrap(y + 1, A->n1) + 0)) * (A->n2 + 0) + 0;
        const int64_t row2 = ((z + 0) * (A->n1 + 0) + (fl_wrap(y + -1, A->n1) + 0)) * (A->n2 + 0) + 0;
        int64_t begin = (16 - row0 % 16) % 16;
        while (begin < 1) begin += 16;
        int64_t end = begin + (nx - 1 - begin) / 16 * 16;
        if (nx - 1 - begin < 16) begin = end = nx;
        for (int64_t x = 0; x < begin;) {
            int64_t count = 16 - (row0 + x) % 16;
            if (count > nx - x) count = nx - x;
            fl_loop_pull_edge(A, x, count, row0, row1, row2);
            x += count;
        }
        if (begin < end) fl_loop_pull_inner(A, begin, end, row0, row1, row2);
        for (int64_t x = end; x < nx;) {
            int64_t count = 16 - (row0 + x) % 16;
            if (count > nx - x) count = nx - x;
            fl_loop_pull_edge(A, x, count, row0, row1, row2);
            x += count;
        }
    }
    fl_fence();
    }
}

