/* Checks of tables, counting sort. Every function returns int64_t. */
#include <stdint.h>
#include <string.h>

/* The flat index of the first entry outside 0 .. n-1, or -1. Whole blocks are tested without branches. */
int64_t graph_check_range(const int32_t *entry, int64_t size, int64_t n)
{
    enum { BLOCK = 4096 };
    const uint32_t limit = (uint32_t)n;
    for (int64_t begin = 0; begin < size; begin += BLOCK) {
        const int64_t end = begin + BLOCK < size ? begin + BLOCK : size;
        uint32_t bad = 0;
        for (int64_t i = begin; i < end; i++)
            bad |= (uint32_t)entry[i] >= limit;
        if (bad)
            for (int64_t i = begin; i < end; i++)
                if ((uint32_t)entry[i] >= limit)
                    return i;
    }
    return -1;
}

/* The flat index of the first entry that names a target named before, or -1; met: zeroed, one byte a target. */
int64_t graph_first_repeated(const int32_t *entry, int64_t size, uint8_t *met)
{
    for (int64_t i = 0; i < size; i++) {
        if (met[entry[i]])
            return i;
        met[entry[i]] = 1;
    }
    return -1;
}

/* The first row that names a target which an earlier row names, or -1; owner: one entry a target. */
int64_t graph_first_shared(const int32_t *entry, int64_t n, int64_t arity, int64_t n_targets, int32_t *owner)
{
    memset(owner, 255, (size_t)n_targets * sizeof *owner);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = r * arity; i < (r + 1) * arity; i++) {
            if (owner[entry[i]] >= 0 && owner[entry[i]] != (int32_t)r)
                return r;
            owner[entry[i]] = (int32_t)r;
        }
    return -1;
}

/* The number of different targets met; met: zeroed, one byte a target. */
int64_t graph_count_met(const int32_t *entry, int64_t size, uint8_t *met)
{
    int64_t found = 0;
    for (int64_t i = 0; i < size; i++) {
        found += !met[entry[i]];
        met[entry[i]] = 1;
    }
    return found;
}

/* Stable counting sort of 0 .. n-1 by key; offsets: n_keys + 1. */
int64_t graph_counting_sort(const int32_t *key, int64_t n, int64_t n_keys, int64_t *offsets, int32_t *order)
{
    memset(offsets, 0, (size_t)(n_keys + 1) * sizeof *offsets);
    for (int64_t i = 0; i < n; i++)
        offsets[key[i]]++;
    int64_t sum = 0;
    for (int64_t k = 0; k <= n_keys; k++) { /* offsets[k]: end of key k - 1, moved up as the key is filled */
        const int64_t size = k < n_keys ? offsets[k] : 0;
        offsets[k] = sum;
        sum += size;
    }
    for (int64_t i = 0; i < n; i++)
        order[offsets[key[i]]++] = (int32_t)i;
    for (int64_t k = n_keys; k > 0; k--)
        offsets[k] = offsets[k - 1];
    offsets[0] = 0;
    return 0;
}
