/* Tiles of targets: which elements a contiguous range of targets needs. */
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t n_tables;
    const int32_t *const *table; /* (elements, arity) each */
    const int64_t *arity;
    uint32_t first, n_targets;   /* the targets that are cut into tiles; others are left out */
    uint32_t size;               /* targets a tile */
} Window;

/* Visit each element's tiles once each. order: the elements as they are visited, if n_order is not 0. last: one
 * entry a tile, holding the element that met it last. With elements null the elements of each tile t are counted
 * in ptr[t]; else ptr[t] is where the next one goes. */
static void visit(const Window *w, int64_t n, const int64_t *order, int64_t n_order, int32_t *last, int64_t *ptr,
                  int32_t *elements)
{
    uint32_t tile = 0, begin = 0; /* those of the target before: the next is mostly near */
    for (int64_t i = 0; i < n; i++) {
        const int64_t e = n_order ? order[i] : i;
        for (int64_t k = 0; k < w->n_tables; k++) {
            const int32_t *target = w->table[k] + e * w->arity[k];
            for (int64_t j = 0; j < w->arity[k]; j++) {
                const uint32_t t = (uint32_t)target[j] - w->first;
                if (t >= w->n_targets)
                    continue;
                if (t - begin >= w->size) {
                    tile = t / w->size;
                    begin = tile * w->size;
                }
                if (last[tile] == (int32_t)e)
                    continue;
                last[tile] = (int32_t)e;
                if (elements)
                    elements[ptr[tile]] = (int32_t)e;
                ptr[tile]++;
            }
        }
    }
}

/* ptr (n_tiles + 1): where the elements of each tile begin. Returns their total. */
int64_t graph_count_tiles(int64_t n_tables, const int32_t *const *table, const int64_t *arity, int64_t first,
                          int64_t n_targets, int64_t tile_size, int64_t n, const int64_t *order, int64_t n_order,
                          int64_t n_tiles, int32_t *last, int64_t *ptr)
{
    const Window w = {n_tables, table, arity, (uint32_t)first, (uint32_t)n_targets, (uint32_t)tile_size};
    memset(last, 255, (size_t)n_tiles * sizeof *last);
    memset(ptr, 0, (size_t)(n_tiles + 1) * sizeof *ptr);
    visit(&w, n, order, n_order, last, ptr, 0);
    int64_t sum = 0;
    for (int64_t t = 0; t <= n_tiles; t++) {
        const int64_t length = t < n_tiles ? ptr[t] : 0;
        ptr[t] = sum;
        sum += length;
    }
    return sum;
}

/* Write the elements of each tile in the order in which they are visited. */
int64_t graph_fill_tiles(int64_t n_tables, const int32_t *const *table, const int64_t *arity, int64_t first,
                         int64_t n_targets, int64_t tile_size, int64_t n, const int64_t *order, int64_t n_order,
                         int64_t n_tiles, int32_t *last, int64_t *ptr, int32_t *elements)
{
    const Window w = {n_tables, table, arity, (uint32_t)first, (uint32_t)n_targets, (uint32_t)tile_size};
    memset(last, 255, (size_t)n_tiles * sizeof *last);
    visit(&w, n, order, n_order, last, ptr, elements);
    for (int64_t t = n_tiles; t > 0; t--)
        ptr[t] = ptr[t - 1];
    ptr[0] = 0;
    return 0;
}

/* Whether all targets of an element lie in the tile that begins at a target of the window. */
static int is_inside(const Window *w, int64_t e, uint32_t begin)
{
    const uint32_t left = w->n_targets - begin, size = left < w->size ? left : w->size;
    for (int64_t k = 0; k < w->n_tables; k++)
        for (int64_t i = e * w->arity[k]; i < (e + 1) * w->arity[k]; i++)
            if ((uint32_t)w->table[k][i] - w->first - begin >= size)
                return 0;
    return 1;
}

/* Cut the elements of each tile into runs, of at least shortest consecutive elements with all targets in the tile,
 * and listed segments of the others. seg_ptr (n_tiles + 1): the first segment of each tile. With fill the place of
 * each segment in elements and its length, negative for a listed one, are written too. Returns how many there are. */
int64_t graph_tile_segments(int64_t n_tables, const int32_t *const *table, const int64_t *arity, int64_t first,
                            int64_t n_targets, int64_t tile_size, int64_t n_tiles, const int64_t *ptr,
                            const int32_t *elements, int64_t shortest, int64_t fill, int64_t *seg_ptr, int64_t *place,
                            int32_t *length)
{
    const Window w = {n_tables, table, arity, (uint32_t)first, (uint32_t)n_targets, (uint32_t)tile_size};
    int64_t found = 0;
    for (int64_t t = 0; t < n_tiles; t++) {
        const uint32_t begin = (uint32_t)(t * tile_size);
        int listed = 0; /* whether the last segment is one that goes on */
        seg_ptr[t] = found;
        int inside = ptr[t] < ptr[t + 1] && is_inside(&w, elements[ptr[t]], begin);
        for (int64_t i = ptr[t], j; i < ptr[t + 1]; i = j) {
            const int here = inside;
            for (j = i + 1; j < ptr[t + 1]; j++) {
                inside = is_inside(&w, elements[j], begin);
                if (inside != here || elements[j] != elements[j - 1] + 1)
                    break;
            }
            const int run = here && j - i >= shortest;
            if (run || !listed) {
                if (fill) {
                    place[found] = i;
                    length[found] = 0;
                }
                found++;
            }
            if (fill)
                length[found - 1] += (int32_t)(run ? j - i : i - j);
            listed = !run;
        }
    }
    seg_ptr[n_tiles] = found;
    return found;
}
