/* Memory bandwidth, after McCalpin's STREAM: copy in three ways, triad, an update in place, and
   sum in three ways. Each returns seconds. */
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

/* What is written in place needs not be fetched for it, nor need stores pass the caches by. */
double fl_update(double *restrict a, int64_t n, int threads)
{
    (void)threads;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        int64_t first, last;
        share(n, &first, &last);
#pragma omp simd
        for (int64_t i = first; i < last; i++)
            a[i] = 3.0 - a[i];
    }
    return now() - start;
}

/* A core waits for a limited number of lines at a time. How many it has under way depends on how far its prefetchers
   look, and these follow each stream for itself: so reading is timed in one stream, in several, and in several with lines
   asked for ahead. */
typedef double pack __attribute__((vector_size(64)));
enum { PACK = 8, SUMS = 8, AHEAD = 128 };

static volatile double kept; /* so that sums are formed */

double fl_kept(void)
{
    return kept;
}

static inline __attribute__((always_inline)) double sum_of(const double *a, int64_t n, const int streams, const int ahead)
{
    const int each = SUMS / streams;
    const int64_t length = n / (SUMS * PACK) * (each * PACK); /* of a stream */
    pack sums[SUMS] = {{0.0}};
    for (int64_t i = 0; i < length; i += each * PACK)
#pragma GCC unroll 8
        for (int k = 0; k < streams; k++)
#pragma GCC unroll 8
            for (int u = 0; u < each; u++) {
                const double *place = a + k * length + i + u * PACK;
                if (ahead)
                    __builtin_prefetch(place + ahead);
                sums[k * each + u] += *(const pack *)place;
            }
    double total = 0.0;
    for (int k = 0; k < SUMS; k++)
        for (int u = 0; u < PACK; u++)
            total += sums[k][u];
    for (int64_t i = streams * length; i < n; i++)
        total += a[i];
    return total;
}

#define SUM_IN(NAME, STREAMS, DISTANCE)                                                                                \
    double NAME(const double *a, int64_t n, int threads)                                                               \
    {                                                                                                                  \
        (void)threads;                                                                                                 \
        double total = 0.0, start = now();                                                                             \
        _Pragma("omp parallel num_threads(threads) reduction(+ : total)")                                              \
        {                                                                                                              \
            int64_t first, last;                                                                                       \
            share(n, &first, &last);                                                                                   \
            total += sum_of(a + first, last - first, STREAMS, DISTANCE);                                               \
        }                                                                                                              \
        double seconds = now() - start;                                                                                \
        kept = total;                                                                                               \
        return seconds;                                                                                                \
    }

SUM_IN(fl_sum_plain, 1, 0)
SUM_IN(fl_sum_streams, 4, 0)
SUM_IN(fl_sum_ahead, 4, AHEAD)
