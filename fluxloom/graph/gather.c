/* Tables by which a target collects its contributions: flat inverses, targets of blocks. */
#include <stdint.h>
#include <string.h>

static void count_targets(const int32_t *entry, int64_t size, int32_t *count)
{
    for (int64_t p = 0; p < size; p++)
        count[entry[p]]++;
}

/* count (n_targets): how many entries of all tables name each target. Returns the largest. */
int64_t graph_count_rows(int64_t n_tables, const int32_t *const *table, const int64_t *size, int64_t n_targets,
                         int32_t *count)
{
    memset(count, 0, (size_t)n_targets * sizeof *count);
    for (int64_t k = 0; k < n_tables; k++)
        count_targets(table[k], size[k], count);
    int32_t longest = 0;
    for (int64_t t = 0; t < n_targets; t++)
        longest = count[t] > longest ? count[t] : longest;
    return longest;
}

/* ptr (n_targets + 1): where each target's row begins. Returns the length of the longest row. */
static int64_t row_pointers(int64_t n_tables, const int32_t *const *table, const int64_t *size, int64_t n_targets,
                            int32_t *ptr)
{
    const int64_t longest = graph_count_rows(n_tables, table, size, n_targets, ptr);
    int32_t sum = 0;
    for (int64_t t = 0; t < n_targets; t++) {
        const int32_t length = ptr[t];
        ptr[t] = sum;
        sum += length;
    }
    ptr[n_targets] = sum;
    return longest;
}

/* Undo the moves of pointers that went from the beginning of their row to its end. */
static void move_back(int32_t *ptr, int64_t n_targets)
{
    memmove(ptr + 1, ptr, (size_t)n_targets * sizeof *ptr);
    ptr[0] = 0;
}

/* Write the flat positions of all entries, table behind table, to the next place of their targets: at[t], and
 * stride places on for the next one of the same target. The rows of a table are visited in its order, which lists
 * all of them or, where they come one after the other, none. */
static void place_positions(int64_t n_tables, const int32_t *const *table, const int64_t *size, const int64_t *arity,
                            const int64_t *const *order, const int64_t *ordered, int64_t stride, int32_t *at,
                            int32_t *position)
{
    int64_t base = 0;
    for (int64_t k = 0; k < n_tables; base += size[k++])
        for (int64_t i = 0; i < size[k] / arity[k]; i++) {
            const int64_t row = (ordered[k] ? order[k][i] : i) * arity[k];
            for (int64_t p = row; p < row + arity[k]; p++) {
                const int32_t t = table[k][p];
                const int64_t to = stride ? at[t]++ * stride + t : at[t]++;
                position[to] = (int32_t)(base + p);
            }
        }
}

/* The flat positions that name each target, in order. Returns the length of the longest row. */
int64_t graph_flat_inverse(int64_t n_tables, const int32_t *const *table, const int64_t *size, const int64_t *arity,
                           const int64_t *const *order, const int64_t *ordered, int64_t n_targets, int32_t *ptr,
                           int32_t *position)
{
    const int64_t longest = row_pointers(n_tables, table, size, n_targets, ptr);
    place_positions(n_tables, table, size, arity, order, ordered, 0, ptr, position);
    move_back(ptr, n_targets);
    return longest;
}

/* The k-th flat position of target t goes to position[k * stride + t], -1 behind the last. */
int64_t graph_ell_inverse(int64_t n_tables, const int32_t *const *table, const int64_t *size, const int64_t *arity,
                          const int64_t *const *order, const int64_t *ordered, int64_t n_targets, int64_t degree,
                          int64_t stride, int32_t *count, int32_t *position)
{
    memset(count, 0, (size_t)n_targets * sizeof *count);
    memset(position, 255, (size_t)(degree * stride) * sizeof *position);
    if (stride)
        place_positions(n_tables, table, size, arity, order, ordered, stride, count, position);
    return 0;
}

/* Sort different numbers by those of their bytes in which they differ (the bits of varying). */
static void sort_numbers(int32_t *number, int64_t n, uint32_t varying, int32_t *other)
{
    int32_t *from = number, *to = other;
    for (int shift = 0; shift < 32 && varying >> shift; shift += 8) {
        int32_t begin[257] = {0};
        for (int64_t i = 0; i < n; i++)
            begin[((uint32_t)from[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            begin[b + 1] += begin[b];
        for (int64_t i = 0; i < n; i++)
            to[begin[(uint32_t)from[i] >> shift & 255]++] = from[i];
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != number)
        memcpy(number, from, (size_t)n * sizeof *number);
}

/* The distinct targets of each block, ascending, and the place of each entry's target among them.
 * place: one entry a target; spare: room for most. Returns the number of targets of all blocks, or -1 - b when
 * block b has more than most. */
int64_t graph_block_targets(const int32_t *table, int64_t arity, int64_t n_targets, const int64_t *offset,
                            int64_t n_blocks, int64_t most, int32_t *place, int32_t *spare, int32_t *target_ptr,
                            int32_t *targets, uint16_t *local)
{
    memset(place, 255, (size_t)n_targets * sizeof *place);
    int64_t size = 0;
    target_ptr[0] = 0;
    for (int64_t b = 0; b < n_blocks; b++) {
        const int64_t begin = offset[b] * arity, end = offset[b + 1] * arity;
        int32_t *mine = targets + size;
        int64_t found = 0;
        uint32_t varying = 0;
        for (int64_t p = begin; p < end; p++) {
            const int32_t t = table[p];
            if (place[t] >= 0)
                continue;
            place[t] = 0;
            mine[found++] = t;
            varying |= (uint32_t)(t ^ mine[0]);
        }
        if (found > most)
            return -1 - b;
        sort_numbers(mine, found, varying, spare);
        for (int64_t i = 0; i < found; i++)
            place[mine[i]] = (int32_t)i;
        for (int64_t p = begin; p < end; p++)
            local[p] = (uint16_t)place[table[p]];
        for (int64_t i = 0; i < found; i++)
            place[mine[i]] = -1;
        size += found;
        target_ptr[b + 1] = (int32_t)size;
    }
    return size;
}
