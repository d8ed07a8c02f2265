/* Memory bandwidth, after McCalpin's STREAM: copy in three ways, and triad. Each returns seconds. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#ifdef __AVX__
#include <immintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void share(int64_t n, int64_t *first, int64_t *last)
{
    int64_t rank = 0, team = 1;
#ifdef _OPENMP
    rank = omp_get_thread_num();
    team = omp_get_num_threads();
#endif
    int64_t packs = n / 8; /* n is a multiple of 8, arrays start at multiples of 64 bytes */
    *first = 8 * (packs * rank / team);
    *last = 8 * (packs * (rank + 1) / team);
}

void fl_fill(double *a, double *b, double *c, int64_t n, int threads)
{
    (void)threads;
#pragma omp parallel num_threads(threads)
    {
        int64_t first, last;
        share(n, &first, &last);
        for (int64_t i = first; i < last; i++) {
            a[i] = 1.0;
            b[i] = 2.0;
            c[i] = 0.0;
        }
    }
}

double fl_copy_plain(const double *restrict a, double *restrict c, int64_t n, int threads)
{
    (void)threads;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        int64_t first, last;
        share(n, &first, &last);
#pragma omp simd
        for (int64_t i = first; i < last; i++)
            c[i] = a[i];
    }
    return now() - start;
}

double fl_copy_stream(const double *restrict a, double *restrict c, int64_t n, int threads)
{
    (void)threads;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        int64_t first, last;
        share(n, &first, &last);
#if defined(__AVX512F__)
        for (int64_t i = first; i < last; i += 8)
            _mm512_stream_pd(c + i, _mm512_load_pd(a + i));
        _mm_sfence();
#elif defined(__AVX__)
        for (int64_t i = first; i < last; i += 4)
            _mm256_stream_pd(c + i, _mm256_load_pd(a + i));
        _mm_sfence();
#else
        memcpy(c + first, a + first, (size_t)(last - first) * sizeof(double));
#endif
    }
    return now() - start;
}

double fl_copy_memcpy(const double *restrict a, double *restrict c, int64_t n, int threads)
{
    (void)threads;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        int64_t first, last;
        share(n, &first, &last);
        memcpy(c + first, a + first, (size_t)(last - first) * sizeof(double));
    }
    return now() - start;
}

double fl_triad(const double *restrict a, const double *restrict b, double *restrict c, int64_t n, int threads)
{
    (void)threads;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        int64_t first, last;
        share(n, &first, &last);
#pragma omp simd
        for (int64_t i = first; i < last; i++)
            c[i] = a[i] + 3.0 * b[i];
    }
    return now() - start;
}
