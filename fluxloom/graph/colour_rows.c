/* Greedy colouring of the rows of a square pattern: no two of one colour are joined by an entry. */
#include <stdint.h>

static void see(const int64_t *offset, const int32_t *index, int64_t row, const int32_t *colour, int32_t *seen)
{
    for (int64_t e = offset[row]; e < offset[row + 1]; e++)
        if (colour[index[e]] >= 0)
            seen[colour[index[e]]] = (int32_t)row;
}

/* Rows one by one: each gets the lowest colour that no neighbour has, along entries and against them. colour and
 * seen (n entries each) are -1 at first. Returns the number of colours. */
int64_t graph_colour_rows(int64_t n, const int64_t *offset, const int32_t *index, const int64_t *back_offset,
                          const int32_t *back_index, int32_t *colour, int32_t *seen)
{
    int32_t used = 0;
    for (int64_t row = 0; row < n; row++) {
        see(offset, index, row, colour, seen);
        see(back_offset, back_index, row, colour, seen);
        int32_t mine = 0;
        while (mine < used && seen[mine] == row)
            mine++;
        colour[row] = mine;
        used = mine == used ? used + 1 : used;
    }
    return used;
}
