/* Greedy colouring with one bit mask a target.
 *
 * For each unit (an element, or a block of neighbouring elements) the masks of its targets are joined, the
 * lowest free of 64 colours is taken and its bit set in all of them. Units that find no free colour wait for
 * the next pass, which offers 64 others. When PASSES passes were not enough, some target has hundreds of
 * units; what is left is coloured by counters, one a target: a unit takes the largest counter of its targets,
 * which then go on from there. The counters cost one pass whatever the number of colours.
 */
#include <stdint.h>
#include <string.h>

enum { COLOURS = 64, PASSES = 8 };

typedef struct {
    int64_t n;                    /* tables */
    const int32_t *const *table;  /* (elements, arity) each */
    const int64_t *arity;
    const int64_t *base;          /* where the targets of a table begin in work */
    uint64_t *work;
} Tables;

static inline uint64_t join(const Tables *t, int64_t begin, int64_t end)
{
    uint64_t mask = 0;
    for (int64_t k = 0; k < t->n; k++) {
        const uint64_t *work = t->work + t->base[k];
        const int32_t *entry = t->table[k], arity = (int32_t)t->arity[k];
        for (int64_t i = begin * arity; i < end * arity; i++)
            mask |= work[entry[i]];
    }
    return mask;
}

static inline void mark(const Tables *t, int64_t begin, int64_t end, uint64_t bit)
{
    for (int64_t k = 0; k < t->n; k++) {
        uint64_t *work = t->work + t->base[k];
        const int32_t *entry = t->table[k], arity = (int32_t)t->arity[k];
        for (int64_t i = begin * arity; i < end * arity; i++)
            work[entry[i]] |= bit;
    }
}

static inline void assign(const Tables *t, int64_t begin, int64_t end, uint64_t value)
{
    for (int64_t k = 0; k < t->n; k++) {
        uint64_t *work = t->work + t->base[k];
        const int32_t *entry = t->table[k], arity = (int32_t)t->arity[k];
        for (int64_t i = begin * arity; i < end * arity; i++)
            work[entry[i]] = value;
    }
}

static inline uint64_t largest(const Tables *t, int64_t begin, int64_t end)
{
    uint64_t value = 0;
    for (int64_t k = 0; k < t->n; k++) {
        const uint64_t *work = t->work + t->base[k];
        const int32_t *entry = t->table[k], arity = (int32_t)t->arity[k];
        for (int64_t i = begin * arity; i < end * arity; i++)
            value = work[entry[i]] > value ? work[entry[i]] : value;
    }
    return value;
}

/* Colour the units first .. last-1, from colour start on; unit u has elements bound[u] .. bound[u+1]-1, or is
 * element u when bound is null. The work of their targets must be zero and is left so. waiting: room for
 * last - first. colour[u - shift] receives the colour. Returns the first colour not used. */
static int64_t greedy(const Tables *t, const int64_t *bound, int64_t first, int64_t last, int64_t start,
                      int64_t shift, int32_t *colour, int32_t *waiting)
{
    const int64_t lowest = bound ? bound[first] : first, highest = bound ? bound[last] : last;
    int64_t left = last - first, next = start;
    for (int64_t pass = 0; left > 0; pass++) {
        int64_t again = 0;
        for (int64_t i = 0; i < left; i++) {
            const int64_t u = pass ? waiting[i] : first + i;
            const int64_t begin = bound ? bound[u] : u, end = bound ? bound[u + 1] : u + 1;
            int64_t mine;
            if (pass < PASSES) {
                const uint64_t free = ~join(t, begin, end);
                if (!free) {
                    waiting[again++] = (int32_t)u;
                    continue;
                }
                const int bit = __builtin_ctzll(free);
                mine = start + COLOURS * pass + bit;
                mark(t, begin, end, (uint64_t)1 << bit);
            } else {
                const uint64_t value = largest(t, begin, end);
                mine = start + COLOURS * PASSES + (int64_t)value;
                assign(t, begin, end, value + 1);
            }
            colour[u - shift] = (int32_t)mine;
            next = mine >= next ? mine + 1 : next;
        }
        left = again;
        assign(t, lowest, highest, 0);
    }
    return next;
}

/* Colour elements begin .. end-1; work: zeroed. Returns the number of colours. */
int64_t graph_colour_elements(int64_t n, const int32_t *const *table, const int64_t *arity, const int64_t *base,
                              uint64_t *work, int64_t begin, int64_t end, int32_t *colour, int32_t *waiting)
{
    const Tables t = {n, table, arity, base, work};
    return greedy(&t, 0, begin, end, 0, begin, colour, waiting);
}

/* Colour blocks first .. last-1 from colour start on; work: zeroed. Returns the first colour not used. */
int64_t graph_colour_blocks(int64_t n, const int32_t *const *table, const int64_t *arity, const int64_t *base,
                            uint64_t *work, const int64_t *bound, int64_t first, int64_t last, int64_t start,
                            int32_t *colour, int32_t *waiting)
{
    const Tables t = {n, table, arity, base, work};
    return greedy(&t, bound, first, last, start, 0, colour, waiting);
}

/* Colour the elements of each block on their own; work: zeroed. waiting: room for the largest block. */
int64_t graph_colour_in_blocks(int64_t n, const int32_t *const *table, const int64_t *arity, const int64_t *base,
                               uint64_t *work, const int64_t *bound, int64_t n_blocks, int32_t *colour,
                               int32_t *n_colours, int32_t *waiting)
{
    const Tables t = {n, table, arity, base, work};
    for (int64_t b = 0; b < n_blocks; b++)
        n_colours[b] = (int32_t)greedy(&t, 0, bound[b], bound[b + 1], 0, 0, colour, waiting);
    return 0;
}

/* Sort the elements of each block by colour, stably. begin[ptr[b] + c]: position of the first of colour c in
 * block b; one entry more than the block has colours. */
int64_t graph_sort_in_blocks(const int64_t *bound, int64_t n_blocks, const int32_t *colour, const int64_t *ptr,
                             int32_t *begin, int32_t *order)
{
    for (int64_t b = 0; b < n_blocks; b++) {
        int32_t *position = begin + ptr[b];
        const int64_t colours = ptr[b + 1] - ptr[b] - 1;
        memset(position, 0, (size_t)(colours + 1) * sizeof *position);
        for (int64_t e = bound[b]; e < bound[b + 1]; e++)
            position[colour[e]]++;
        int32_t sum = (int32_t)bound[b];
        for (int64_t c = 0; c <= colours; c++) {
            const int32_t size = c < colours ? position[c] : 0;
            position[c] = sum;
            sum += size;
        }
        for (int64_t e = bound[b]; e < bound[b + 1]; e++)
            order[position[colour[e]]++] = (int32_t)e;
        for (int64_t c = colours; c > 0; c--)
            position[c] = position[c - 1];
        position[0] = (int32_t)bound[b];
    }
    return 0;
}
