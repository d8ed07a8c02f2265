/* Pairs of cells that are coupled strongest, along a front; pairs of pairs are made by contraction of the graph. */
#include <stdint.h>

enum { BUCKETS = 32 };

/* Cells of the front by the number of their free neighbours; those of a bucket first in, first out. */
typedef struct {
    int32_t head[BUCKETS], tail[BUCKETS];
    int32_t *next, *previous, *bucket; /* bucket -1: not in the front */
} Front;

static void leave(Front *f, int32_t i)
{
    int32_t b = f->bucket[i], p = f->previous[i], q = f->next[i];
    if (b < 0)
        return;
    *(p < 0 ? &f->head[b] : &f->next[p]) = q;
    *(q < 0 ? &f->tail[b] : &f->previous[q]) = p;
    f->bucket[i] = -1;
}

static void enter(Front *f, int32_t i, int32_t free)
{
    int32_t b = free < BUCKETS ? free : BUCKETS - 1;
    if (f->bucket[i] == b)
        return;
    leave(f, i);
    f->bucket[i] = b;
    f->next[i] = -1;
    f->previous[i] = f->tail[b];
    *(f->tail[b] < 0 ? &f->head[b] : &f->next[f->tail[b]]) = i;
    f->tail[b] = i;
}

static int32_t lowest(const Front *f)
{
    for (int b = 0; b < BUCKETS; b++)
        if (f->head[b] >= 0)
            return f->head[b];
    return -1;
}

typedef struct {
    const int64_t *offset;
    const int32_t *index;
    const double *area, *volume;
} Graph;

static double coupling(const Graph *g, int32_t i, int64_t e)
{
    return g->area[e] * g->area[e] / (g->volume[i] * g->volume[g->index[e]]);
}

/* The free neighbour coupled strongest, of those about as strong the one with the lowest number, so that pairs of a
 * lattice lie alike; -1 if all are weaker than `weak` times the strongest neighbour of i, or with it larger than
 * `limit`. */
static int32_t partner(const Graph *g, int32_t i, const int32_t *mate, const int32_t *size, int64_t limit, double weak)
{
    int32_t best = -1;
    double found = 0.0, strongest = 0.0;
    for (int64_t e = g->offset[i]; e < g->offset[i + 1]; e++) {
        int32_t j = g->index[e];
        double w = coupling(g, i, e);
        strongest = w > strongest ? w : strongest;
        if (mate[j] >= 0 || size[i] + size[j] > limit)
            continue;
        if (best < 0 || w > 1.02 * found || (w > 0.98 * found && j < best)) { /* 1.02: rounding and slow stretching */
            best = j;
            found = w;
        }
    }
    return found >= weak * strongest ? best : -1;
}

/* i is taken: its free neighbours have one less, and are in the front now. */
static void taken(const Graph *g, Front *f, int32_t i, const int32_t *mate, int32_t *free)
{
    leave(f, i);
    for (int64_t e = g->offset[i]; e < g->offset[i + 1]; e++) {
        int32_t j = g->index[e];
        free[j]--;
        if (mate[j] < 0)
            enter(f, j, free[j]);
    }
}

/* Pair n cells. `first` (n_first) are in the front at first; where it is empty it starts again at the next cell.
 * mate: of each cell, or itself. work has 4 n entries. Thousandths: weak. Returns the number of pairs. */
int64_t agglomerate_pair(int64_t n, const int64_t *offset, const int32_t *index, const double *area,
                         const double *volume, const int32_t *size, int64_t n_first, const int32_t *first,
                         int64_t limit, int64_t thousandths, int32_t *mate, int32_t *work)
{
    Graph g = { offset, index, area, volume };
    Front f = { { 0 }, { 0 }, work, work + n, work + 2 * n };
    int32_t *free = work + 3 * n;
    int64_t start = 0, pairs = 0;
    for (int b = 0; b < BUCKETS; b++)
        f.head[b] = f.tail[b] = -1;
    for (int64_t i = 0; i < n; i++) {
        f.bucket[i] = mate[i] = -1;
        free[i] = (int32_t)(offset[i + 1] - offset[i]);
    }
    for (int64_t k = 0; k < n_first; k++)
        enter(&f, first[k], free[first[k]]);
    for (;;) {
        int32_t i = lowest(&f);
        while (i < 0 && start < n) {
            i = mate[start] < 0 ? (int32_t)start : -1;
            start++;
        }
        if (i < 0)
            return pairs;
        int32_t j = partner(&g, i, mate, size, limit, 1e-3 * (double)thousandths);
        mate[i] = j < 0 ? i : j;
        if (j >= 0)
            mate[j] = i;
        taken(&g, &f, i, mate, free);
        if (j >= 0)
            taken(&g, &f, j, mate, free);
        pairs += j >= 0;
    }
}

static int32_t root(const int32_t *into, int32_t i)
{
    while (into[i] != i)
        i = into[i];
    return i;
}

/* Groups of at most `least` join the neighbour coupled strongest, one with which they have at most `limit` cells if
 * there is one. into: number of the group that each one is a part of in the end. Sizes change. */
int64_t agglomerate_join(int64_t n, const int64_t *offset, const int32_t *index, const double *area,
                         const double *volume, int32_t *size, int64_t least, int64_t limit, int32_t *into)
{
    Graph g = { offset, index, area, volume };
    int64_t joined = 0;
    for (int64_t i = 0; i < n; i++)
        into[i] = (int32_t)i;
    for (int32_t i = 0; i < n; i++) {
        int32_t best = -1;
        double found = -1.0;
        if (size[i] > least || into[i] != i)
            continue;
        for (int64_t e = offset[i]; e < offset[i + 1]; e++) {
            int32_t r = root(into, index[e]);
            double w = coupling(&g, i, e) * (size[r] + size[i] > limit ? 1e-3 : 1.0);
            if (r != i && w > found) {
                best = r;
                found = w;
            }
        }
        if (best < 0)
            continue;
        into[i] = best;
        size[best] += size[i];
        joined++;
    }
    for (int32_t i = 0; i < n; i++)
        into[i] = root(into, i);
    return joined;
}

/* Rows of m groups: what their members (n, in the order of the groups) lead to, areas to one group added.
 * mark has m entries. Returns the number of entries, at most that of the graph. */
int64_t agglomerate_contract(const int64_t *offset, const int32_t *index, const double *area, const int32_t *group,
                             int64_t m, const int64_t *member_offset, const int64_t *member, int64_t *out_offset,
                             int32_t *out_index, double *out_area, int64_t *mark)
{
    int64_t size = 0;
    for (int64_t k = 0; k < m; k++)
        mark[k] = -1;
    for (int64_t k = 0; k < m; k++) {
        out_offset[k] = size;
        for (int64_t a = member_offset[k]; a < member_offset[k + 1]; a++)
            for (int64_t e = offset[member[a]]; e < offset[member[a] + 1]; e++) {
                int32_t other = group[index[e]];
                if (other == k)
                    continue;
                if (mark[other] < out_offset[k]) {
                    mark[other] = size;
                    out_index[size] = other;
                    out_area[size++] = 0.0;
                }
                out_area[mark[other]] += area[e];
            }
    }
    out_offset[m] = size;
    return size;
}
