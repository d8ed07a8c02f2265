/* Fixed part of every generated translation unit. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#define AI static inline __attribute__((always_inline))
#define FL_ALIGN __attribute__((aligned(64)))

AI int fl_threads(int64_t wanted) {
#ifdef _OPENMP
    return wanted > 0 ? (int)wanted : omp_get_max_threads();
#else
    (void)wanted;
    return 1;
#endif
}
/* Orders the weakly ordered streaming stores of a thread before it leaves a loop. */
AI void fl_fence(void) {
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}
/* Asks for memory that a thread reads soon: rows of a few entries end before the processor sees that they follow on. */
AI void fl_ahead(const void *p, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch((const char *)p + b);
}
