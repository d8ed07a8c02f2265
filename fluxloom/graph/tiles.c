/* Tiles of targets: which elements a contiguous range of targets needs. */
#include <stdint.h>
#include <string.h>

/* Visit each element's tiles once each. last: one entry a tile, holding the element that met it last. With
 * elements null the elements of each tile t are counted in ptr[t]; else ptr[t] is where the next one goes. */
static void visit(int64_t n_tables, const int32_t *const *table, const int64_t *arity, int64_t n, uint32_t size,
                  int32_t *last, int64_t *ptr, int32_t *elements)
{
    for (int64_t e = 0; e < n; e++)
        for (int64_t k = 0; k < n_tables; k++) {
            const int32_t *target = table[k] + e * arity[k];
            for (int64_t j = 0; j < arity[k]; j++) {
                const uint32_t tile = (uint32_t)target[j] / size;
                if (last[tile] == (int32_t)e)
                    continue;
                last[tile] = (int32_t)e;
                if (elements)
                    elements[ptr[tile]] = (int32_t)e;
                ptr[tile]++;
            }
        }
}

/* ptr (n_tiles + 1): where the elements of each tile begin. Returns their total. */
int64_t graph_count_tiles(int64_t n_tables, const int32_t *const *table, const int64_t *arity, int64_t n,
                          int64_t tile_size, int64_t n_tiles, int32_t *last, int64_t *ptr)
{
    memset(last, 255, (size_t)n_tiles * sizeof *last);
    memset(ptr, 0, (size_t)(n_tiles + 1) * sizeof *ptr);
    visit(n_tables, table, arity, n, (uint32_t)tile_size, last, ptr, 0);
    int64_t sum = 0;
    for (int64_t t = 0; t <= n_tiles; t++) {
        const int64_t length = t < n_tiles ? ptr[t] : 0;
        ptr[t] = sum;
        sum += length;
    }
    return sum;
}

/* Write the elements of each tile in ascending order and count their runs in run_ptr (n_tiles + 1), as
 * offsets. Returns the number of runs. */
int64_t graph_fill_tiles(int64_t n_tables, const int32_t *const *table, const int64_t *arity, int64_t n,
                         int64_t tile_size, int64_t n_tiles, int32_t *last, int64_t *ptr, int32_t *elements,
                         int64_t *run_ptr)
{
    memset(last, 255, (size_t)n_tiles * sizeof *last);
    visit(n_tables, table, arity, n, (uint32_t)tile_size, last, ptr, elements);
    for (int64_t t = n_tiles; t > 0; t--)
        ptr[t] = ptr[t - 1];
    ptr[0] = 0;
    run_ptr[0] = 0;
    for (int64_t t = 0; t < n_tiles; t++) {
        int64_t runs = 0;
        for (int64_t i = ptr[t]; i < ptr[t + 1]; i++)
            runs += i == ptr[t] || elements[i] != elements[i - 1] + 1;
        run_ptr[t + 1] = run_ptr[t] + runs;
    }
    return run_ptr[n_tiles];
}

/* Write the maximal runs of consecutive elements of each tile. */
int64_t graph_fill_runs(int64_t n_tiles, const int64_t *ptr, const int32_t *elements, int32_t *begin,
                        int32_t *length)
{
    int64_t run = -1;
    for (int64_t t = 0; t < n_tiles; t++)
        for (int64_t i = ptr[t]; i < ptr[t + 1]; i++) {
            if (i == ptr[t] || elements[i] != elements[i - 1] + 1) {
                run++;
                begin[run] = elements[i];
                length[run] = 0;
            }
            length[run]++;
        }
    return run + 1;
}
