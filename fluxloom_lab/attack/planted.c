/* Faults that sanitizers have to report, and the same functions without the fault. */
#include <stdint.h>

double planted_read(const double *values, int64_t index)
{
    return values[index];
}

int32_t planted_next(int32_t value)
{
    return value + 1;
}

void planted_sum(double *sum, int64_t n, int32_t racing)
{
    double total = 0.0;
    if (racing) {
#pragma omp parallel for num_threads(4)
        for (int64_t i = 0; i < n; ++i)
            *sum += (double)i;
    } else {
#pragma omp parallel for num_threads(4) reduction(+ : total)
        for (int64_t i = 0; i < n; ++i)
            total += (double)i;
        *sum = total;
    }
}
