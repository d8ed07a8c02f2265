/* Where numbers stand among ascending ones: buckets of 2^shift consecutive numbers, bisection inside a bucket. */
#include <stdint.h>

/* first (n_buckets + 1): how many of the n ascending numbers lie below each bucket; bucket 0 begins at the lowest.
 * Returns the place of a number that is out of order, or -1. */
int64_t graph_fill_buckets(const int64_t *ascending, int64_t n, int64_t shift, int64_t n_buckets, int32_t *first)
{
    int64_t bucket = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((i && ascending[i] <= ascending[i - 1]) || ascending[i] > ascending[n - 1])
            return i;
        for (const int64_t own = (ascending[i] - ascending[0]) >> shift; bucket <= own; bucket++)
            first[bucket] = (int32_t)i;
    }
    for (; bucket <= n_buckets; bucket++)
        first[bucket] = (int32_t)n;
    return -1;
}

/* The place of each number, of 64 bits if wide, else of 32; -1 where it is not there. Returns how many are not. */
int64_t graph_find_numbers(const int64_t *ascending, int64_t low, int64_t shift, int64_t n_buckets,
                           const int32_t *first, const void *number, int64_t wide, int64_t size, int32_t *place)
{
    const int64_t full = (int64_t)1 << shift;
    int64_t missing = 0;
    for (int64_t i = 0; i < size; i++) {
        const int64_t value = wide ? ((const int64_t *)number)[i] : ((const int32_t *)number)[i];
        const uint64_t bucket = (uint64_t)(value - low) >> shift; /* huge for what lies below */
        int32_t at = -1;
        if (bucket < (uint64_t)n_buckets) {
            int32_t begin = first[bucket], end = first[bucket + 1];
            if (end - begin == full)
                at = begin + (int32_t)((value - low) & (full - 1));
            else {
                const int32_t stop = end;
                while (begin < end) {
                    const int32_t middle = begin + (end - begin) / 2;
                    if (ascending[middle] < value)
                        begin = middle + 1;
                    else
                        end = middle;
                }
                at = begin < stop && ascending[begin] == value ? begin : -1;
            }
        }
        place[i] = at;
        missing += at < 0;
    }
    return missing;
}

/* Rows of a table in new numbers, each at its new place. row_place: of the first n_moved rows; the others stay.
 * An entry of 0 or more is replaced by target_place[entry], -2 by the next of away; -1 stays. */
int64_t graph_renumber_rows(const int32_t *table, int64_t n, int64_t arity, const int32_t *row_place, int64_t n_moved,
                            const int32_t *target_place, const int32_t *away, int32_t *out)
{
    for (int64_t r = 0; r < n; r++) {
        int32_t *row = out + (r < n_moved ? row_place[r] : r) * arity;
        for (int64_t k = 0; k < arity; k++) {
            const int32_t entry = table[r * arity + k];
            row[k] = entry >= 0 ? target_place[entry] : entry == -2 ? *away++ : -1;
        }
    }
    return 0;
}

/* Put chosen numbers first and the others behind them, both in their order; place: where each number went. */
int64_t graph_chosen_first(const uint8_t *chosen, const int64_t *number, int64_t n, int32_t *place, int64_t *out)
{
    int64_t first = 0, behind = 0;
    for (int64_t i = 0; i < n; i++)
        behind += chosen[i] != 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t to = chosen[i] ? first++ : behind++;
        place[i] = (int32_t)to;
        out[to] = number[i];
    }
    return first;
}
