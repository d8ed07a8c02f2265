/* Patterns of ragged rows. */
#include <stdint.h>
#include <stdlib.h>

/* Copy the entries of an (n, arity) table that are not negative; offsets: n + 1. Returns their number. */
int64_t graph_compact_rows(const int32_t *table, int64_t n, int64_t arity, int64_t *offsets, int32_t *column)
{
    int64_t size = 0;
    for (int64_t r = 0; r < n; r++) {
        offsets[r] = size;
        for (int64_t k = 0; k < arity; k++) {
            column[size] = table[r * arity + k];
            size += column[size] >= 0;
        }
    }
    offsets[n] = size;
    return size;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void sort_row(int32_t *row, int64_t n)
{
    if (n > 48) {
        qsort(row, (size_t)n, sizeof *row, ascending);
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        const int32_t value = row[i];
        int64_t j = i;
        for (; j > 0 && row[j - 1] > value; j--)
            row[j] = row[j - 1];
        row[j] = value;
    }
}

/* Link members that share a group. Groups list members (group_ptr, member), and each member its groups
 * (own_ptr, group). last: one entry a member. With neighbour null the neighbours are counted in ptr (n + 1), as
 * offsets; else they are written there, ascending. Returns their number. */
int64_t graph_link_members(int64_t n, const int64_t *group_ptr, const int32_t *member, const int64_t *own_ptr,
                           const int32_t *group, int32_t *last, int64_t *ptr, int64_t fill, int32_t *neighbour)
{
    for (int64_t v = 0; v < n; v++)
        last[v] = -1;
    int64_t size = 0;
    for (int64_t v = 0; v < n; v++) {
        const int64_t begin = size;
        ptr[v] = begin;
        last[v] = (int32_t)v;
        for (int64_t i = own_ptr[v]; i < own_ptr[v + 1]; i++)
            for (int64_t j = group_ptr[group[i]]; j < group_ptr[group[i] + 1]; j++) {
                const int32_t u = member[j];
                if (last[u] == (int32_t)v)
                    continue;
                last[u] = (int32_t)v;
                if (fill)
                    neighbour[size] = u;
                size++;
            }
        if (fill)
            sort_row(neighbour + begin, size - begin);
    }
    ptr[n] = size;
    return size;
}

/* Rows of the pairs of members of a group, with the pair of a member and itself: ptr (n + 1) are their offsets, a row is
 * ascending. Each of the groups lists arity members; member v is at leg[i] of group[i], own_ptr[v] <= i < own_ptr[v + 1].
 * place: one entry a member. Writes columns, where a row has its own member, and where group g has the pair i, j:
 * at table[(g * arity + i) * arity + j]. Returns the number of columns. */
int64_t graph_pair_entries(int64_t n, int64_t arity, const int32_t *member, const int64_t *own_ptr,
                           const int32_t *group, const uint8_t *leg, const int64_t *ptr, int32_t *place,
                           int32_t *column, int32_t *diagonal, int32_t *table)
{
    for (int64_t v = 0; v < n; v++)
        place[v] = -1;
    for (int64_t v = 0; v < n; v++) {
        const int64_t begin = ptr[v];
        int64_t size = begin;
        place[v] = (int32_t)size;
        column[size++] = (int32_t)v;
        for (int64_t i = own_ptr[v]; i < own_ptr[v + 1]; i++) {
            const int32_t *row = member + group[i] * arity;
            for (int64_t j = 0; j < arity; j++)
                if (place[row[j]] < begin) { /* places of earlier rows are lower */
                    place[row[j]] = (int32_t)size;
                    column[size++] = row[j];
                }
        }
        sort_row(column + begin, size - begin);
        for (int64_t k = begin; k < size; k++)
            place[column[k]] = (int32_t)k;
        diagonal[v] = place[v];
        for (int64_t i = own_ptr[v]; i < own_ptr[v + 1]; i++) {
            const int32_t *row = member + group[i] * arity;
            int32_t *pair = table + (group[i] * arity + leg[i]) * arity;
            for (int64_t j = 0; j < arity; j++)
                pair[j] = place[row[j]];
        }
    }
    return ptr[n];
}

/* The lowest vertex that each of the n vertices of a symmetric graph is connected to; queue: one entry a vertex. */
int64_t graph_components(const int64_t *ptr, const int32_t *neighbour, int64_t n, int32_t *label, int32_t *queue)
{
    for (int64_t v = 0; v < n; v++)
        label[v] = -1;
    for (int64_t root = 0; root < n; root++) {
        if (label[root] >= 0)
            continue;
        label[root] = queue[0] = (int32_t)root;
        for (int64_t next = 0, size = 1; next < size; next++)
            for (int64_t i = ptr[queue[next]]; i < ptr[queue[next] + 1]; i++)
                if (label[neighbour[i]] < 0) {
                    label[neighbour[i]] = (int32_t)root;
                    queue[size++] = neighbour[i];
                }
    }
    return 0;
}
