/* Replays a fixed sequence of generated loops and keeps the time of each. */
#include <stdint.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct {
    void (*function)(const int64_t *);
    const int64_t *block;
    double seconds;
    int64_t count;
} fl_call;

static double fl_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fl_sequence(int64_t n, fl_call *call) {
    double start = fl_now();
    for (int64_t k = 0; k < n; k++) {
        call[k].function(call[k].block);
        const double end = fl_now();
        call[k].seconds += end - start;
        call[k].count += 1;
        start = end;
    }
}

/* Sets every component of a global to one value: pointer, components, bytes of one, its bits. */
void fl_reset(const int64_t *block) {
    char *const target = (char *)block[0];
    for (int64_t k = 0; k < block[1]; k++) memcpy(target + k * block[2], &block[3], (size_t)block[2]);
}

/* Ends the threads of the caller, which are made again when needed: a child of fork() has none, and would wait for them. */
void fl_end_threads(void) {
#if defined(_OPENMP) && (!defined(__GNUC__) || __GNUC__ >= 9 || defined(__clang__))
    omp_pause_resource_all(omp_pause_hard);
#endif
}
