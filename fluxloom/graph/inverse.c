/* Inverse maps: from each target to the elements (and legs) that name it, in the order of the elements. */
#include <stdint.h>
#include <string.h>

/* offsets (n_targets + 1): where each target's list begins; on return of the fill functions again so. */
static void count_entries(const int32_t *entry, int64_t size, int64_t n_targets, int64_t *offsets)
{
    memset(offsets, 0, (size_t)(n_targets + 1) * sizeof *offsets);
    for (int64_t i = 0; i < size; i++)
        offsets[entry[i]]++;
    int64_t sum = 0;
    for (int64_t t = 0; t <= n_targets; t++) {
        const int64_t length = t < n_targets ? offsets[t] : 0;
        offsets[t] = sum;
        sum += length;
    }
}

static void shift_back(int64_t *offsets, int64_t n_targets)
{
    for (int64_t t = n_targets; t > 0; t--)
        offsets[t] = offsets[t - 1];
    offsets[0] = 0;
}

int64_t graph_inverse_map(const int32_t *table, int64_t n, int64_t arity, int64_t n_targets, int64_t *offsets,
                          int32_t *element, uint8_t *leg)
{
    count_entries(table, n * arity, n_targets, offsets);
    for (int64_t e = 0; e < n; e++)
        for (int64_t k = 0; k < arity; k++) {
            const int64_t at = offsets[table[e * arity + k]]++;
            element[at] = (int32_t)e;
            leg[at] = (uint8_t)k;
        }
    shift_back(offsets, n_targets);
    return 0;
}

int64_t graph_inverse_ragged(const int64_t *row_offsets, const int32_t *target, int64_t n_rows, int64_t n_targets,
                             int64_t *offsets, int32_t *row, int64_t *entry)
{
    count_entries(target, row_offsets[n_rows], n_targets, offsets);
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t j = row_offsets[r]; j < row_offsets[r + 1]; j++) {
            const int64_t at = offsets[target[j]]++;
            row[at] = (int32_t)r;
            entry[at] = j;
        }
    shift_back(offsets, n_targets);
    return 0;
}

/* The j-th entry of row r = lane + slice * lanes lies at slice_start[slice] + j * lanes + lane. */
int64_t graph_slice_inverse(const int64_t *offsets, const int32_t *element, const uint8_t *leg, int64_t n_rows,
                            int64_t lanes, int64_t n_slices, const int64_t *slice_start, const int32_t *width,
                            int32_t *out_element, int8_t *out_leg)
{
    for (int64_t s = 0; s < n_slices; s++)
        for (int64_t lane = 0; lane < lanes; lane++) {
            const int64_t r = s * lanes + lane;
            const int64_t begin = r < n_rows ? offsets[r] : 0, length = r < n_rows ? offsets[r + 1] - begin : 0;
            const int32_t filler = length ? element[begin + length - 1] : 0;
            for (int64_t j = 0; j < width[s]; j++) {
                const int64_t at = slice_start[s] + j * lanes + lane;
                out_element[at] = j < length ? element[begin + j] : filler;
                out_leg[at] = j < length ? (int8_t)leg[begin + j] : -1;
            }
        }
    return 0;
}
