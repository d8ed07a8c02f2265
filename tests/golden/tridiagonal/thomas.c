#define W 64
#define REAL double
#define FINITE(value) ((value) - (value) == 0)
#define LOST(pivot, whole) (((pivot) < 0 ? -(pivot) : (pivot)) <= (REAL)4.440892098500626e-16 * rows * ((whole) < 0 ? -(whole) : (whole)))
#define TELL(l) bad = number + (l) + 1 > bad ? number + (l) + 1 : bad
#define Y(l, i, r) (y_at + (l) * INT64_C(1) + (i) * row_step + (r) * INT64_C(0))
#define X(l, i, r) (x_at + (l) * INT64_C(1) + (i) * row_step + (r) * INT64_C(0))
#define K(l, i) (c_at + (l) * across + (i) * c_row)
#define SHIFT(l) (inner_shift[s + (l)] + outer_shift[o])

#define CP(i, l) held[(int64_t)(i) * (2 * W) + (l)]
#define LEFT(i, l) held[(int64_t)(i) * (2 * W) + W + (l)]
#define D(i, l, r) held[(int64_t)(i) * (2 * W) + 1 * W + (r) * W + (l)]

#if defined(__AVX__)
#include <immintrin.h>
#endif
/* Stores values; those that fill whole lines of a cache do not pass through it, and need not be read before. */
AI void fl_store(REAL *restrict to, const REAL *restrict from, int64_t count) {
#if defined(__AVX__)
    for (; count > 0 && (uintptr_t)to % 64; count--) *to++ = *from++;
    for (; count >= 8; count -= 8, to += 8, from += 8) {
#if defined(__AVX512F__)
        _mm512_stream_pd(to, _mm512_loadu_pd(from));
#else
        _mm256_stream_pd(to, _mm256_loadu_pd(from));
        _mm256_stream_pd(to + 8 / 2, _mm256_loadu_pd(from + 8 / 2));
#endif
    }
#endif
    for (; count > 0; count--) *to++ = *from++;
}

typedef struct {
    const double * y;
    double * x;
    const double * a;
    const double * b;
    const double * c;
    const double * mass;
    const double * inner_shift;
    const double * outer_shift;
    double * work;
    int32_t * status;
    int64_t rows;
    int64_t inner;
    int64_t outer;
    int64_t y_first;
    int64_t x_first;
    int64_t row_step;
    int64_t inner_step;
    int64_t outer_step;
    int64_t rhs_step;
    int64_t c_row;
    int64_t c_inner;
    int64_t c_outer;
    int64_t pinned;
    double scale;
} fl_thomas_args;
void fl_thomas(const int64_t *S)
{
    const fl_thomas_args *const A = (const fl_thomas_args *)S;
    const double *const y = A->y;
    double *const x = A->x;
    const double *restrict const a = A->a;
    const double *restrict const b = A->b;
    const double *restrict const c = A->c;
    const double *restrict const mass = A->mass;
    const double *restrict const inner_shift = A->inner_shift;
    const double *restrict const outer_shift = A->outer_shift;
    double *restrict const work = A->work;
    int32_t *restrict const status = A->status;
    const int64_t rows = A->rows;
    const int64_t inner = A->inner;
    const int64_t outer = A->outer;
    const int64_t y_first = A->y_first;
    const int64_t x_first = A->x_first;
    const int64_t row_step = A->row_step;
    const int64_t inner_step = A->inner_step;
    const int64_t outer_step = A->outer_step;
    const int64_t rhs_step = A->rhs_step;
    const int64_t c_row = A->c_row;
    const int64_t c_inner = A->c_inner;
    const int64_t c_outer = A->c_outer;
    const int64_t pinned = A->pinned;
    const double scale = A->scale;
    const int64_t skew = (int64_t)((uintptr_t)(x + x_first) % 64 / 8), pieces = (inner + skew + 64 - 1) / 64, chunks = pieces * (outer);

    #pragma omp parallel num_threads(2)
    {
    const int64_t thread = FL_THREAD;
    REAL *const held = work + INT64_C(0) + thread * INT64_C(65536);
    int64_t bad = 0;
    #pragma omp for schedule(static)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {

        const int64_t o = chunk / pieces, begin = chunk % pieces * 64 - skew, s = begin < 0 ? 0 : begin;
        const int64_t number = o * inner + s;
        const int lanes = (int)((begin + 64 < inner ? begin + 64 : inner) - s);
        const int64_t y_at = y_first + o * outer_step + s * INT64_C(1);
        const int64_t x_at = x_first + o * outer_step + s * INT64_C(1);
        const int64_t c_at = o * c_outer + s * c_inner;
        (void)c_at;


        const int64_t m = rows - 0;
        const int64_t across = c_inner;
        const REAL factor = (REAL)scale;
        (void)across;
        REAL doubled[W];
        for (int l = 0; l < W; l++) doubled[l] = number + l == pinned ? (REAL)2 : (REAL)1;
        (void)doubled;

        if (c_inner == 1) { const int64_t across = 1;
        {
            const int64_t i = 0;
            const REAL last = m == 1;
            (void)last;
            #pragma omp simd
            for (int l = 0; l < lanes; l++) {
                const REAL low = (REAL)0, inverse = 1 / (((b[K(l, i)]) * doubled[l]) - low * ((REAL)0)), cp = c[K(l, i)] * inverse;
                CP(i, l) = cp;
                const REAL d0 = (factor * y[Y(l, i, 0)] - low * ((REAL)0)) * inverse;
                D(i, l, 0) = d0;

            }
        }
        for (int64_t i = 1; i < m; i++) {
            const REAL last = i == m - 1;
            (void)last;
            int done = 0;
            const int64_t far_row = i + 16 < m ? i + 16 : m - 1;
            for (; done + 8 <= lanes; done += 8) {
                for (int l = done; l < done + 8; l += 8) {
                    __builtin_prefetch(y + Y(l, far_row, 0), 0, 2);
                    __builtin_prefetch(a + K(l, far_row), 0, 2);
                    __builtin_prefetch(b + K(l, far_row), 0, 2);
                    __builtin_prefetch(c + K(l, far_row), 0, 2);
                }
                #pragma omp simd simdlen(8)
                for (int l = done; l < done + 8; l++) {
                const REAL low = a[K(l, i)], inverse = 1 / (((b[K(l, i)])) - low * (CP(i - 1, l))), cp = c[K(l, i)] * inverse;
                CP(i, l) = cp;
                const REAL d0 = (factor * y[Y(l, i, 0)] - low * (D(i - 1, l, 0))) * inverse;
                D(i, l, 0) = d0;

                }
            }
            #pragma omp simd
            for (int l = done; l < lanes; l++) {
                const REAL low = a[K(l, i)], inverse = 1 / (((b[K(l, i)])) - low * (CP(i - 1, l))), cp = c[K(l, i)] * inverse;
                CP(i, l) = cp;
                const REAL d0 = (factor * y[Y(l, i, 0)] - low * (D(i - 1, l, 0))) * inverse;
                D(i, l, 0) = d0;

            }
        }
        } else {
        {
            const int64_t i = 0;
            const REAL last = m == 1;
            (void)last;
            #pragma omp simd
            for (int l = 0; l < lanes; l++) {
                const REAL low = (REAL)0, inverse = 1 / (((b[K(l, i)]) * doubled[l]) - low * ((REAL)0)), cp = c[K(l, i)] * inverse;
                CP(i, l) = cp;
                const REAL d0 = (factor * y[Y(l, i, 0)] - low * ((REAL)0)) * inverse;
                D(i, l, 0) = d0;

            }
        }
        for (int64_t i = 1; i < m; i++) {
            const REAL last = i == m - 1;
            (void)last;
            int done = 0;
            const int64_t far_row = i + 16 < m ? i + 16 : m - 1;
            for (; done + 8 <= lanes; done += 8) {
                for (int l = done; l < done + 8; l += 8) {
                    __builtin_prefetch(y + Y(l, far_row, 0), 0, 2);
                    __builtin_prefetch(a + K(l, far_row), 0, 2);
                    __builtin_prefetch(b + K(l, far_row), 0, 2);
                    __builtin_prefetch(c + K(l, far_row), 0, 2);
                }
                #pragma omp simd simdlen(8)
                for (int l = done; l < done + 8; l++) {
                const REAL low = a[K(l, i)], inverse = 1 / (((b[K(l, i)])) - low * (CP(i - 1, l))), cp = c[K(l, i)] * inverse;
                CP(i, l) = cp;
                const REAL d0 = (factor * y[Y(l, i, 0)] - low * (D(i - 1, l, 0))) * inverse;
                D(i, l, 0) = d0;

                }
            }
            #pragma omp simd
            for (int l = done; l < lanes; l++) {
                const REAL low = a[K(l, i)], inverse = 1 / (((b[K(l, i)])) - low * (CP(i - 1, l))), cp = c[K(l, i)] * inverse;
                CP(i, l) = cp;
                const REAL d0 = (factor * y[Y(l, i, 0)] - low * (D(i - 1, l, 0))) * inverse;
                D(i, l, 0) = d0;

            }
        }
        }
        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < 1; r++) if (!FINITE(D(m - 1, l, r))) TELL(l);


        {
            const int64_t i = m - 1;
            for (int l = 0; l < lanes; l++) {
                const REAL u0 = D(i, l, 0);
                D(i, l, 0) = u0;
                x[X(l, i, 0)] = u0;

            }
        }
        for (int64_t i = m - 2; i >= 0; i--) {
            #pragma omp simd simdlen(8)
            for (int l = 0; l < lanes; l++) {
                const REAL cp = CP(i, l);
                const REAL u0 = D(i, l, 0) - cp * D(i + 1, l, 0);
                D(i, l, 0) = u0;

            }
            fl_store(x + X(0, i, 0), &D(i, 0, 0), lanes * 1);
        }

        fl_fence();

    }
    if (bad) {
        #pragma omp critical
        status[0] = bad > status[0] ? (int32_t)(bad < INT32_MAX ? bad : INT32_MAX) : status[0];
    }
    }
}
