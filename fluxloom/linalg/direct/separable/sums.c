/* Body of `sums`: a weighted sum of columns, PIECE rows of it; a work item has one. */
        const int64_t which = part / pieces % sums, from = part % pieces * PIECE;
        const int64_t size = PIECE > 1 && ROWS - from < PIECE ? ROWS - from : PIECE;
        FL_GLOBAL REAL *const table = u + part / pieces / sums * plane_step + from;
        FL_GLOBAL REAL *const target = table + (int64_t)targets[which] * ROWS;
        REAL sum[PIECE];
        for (int64_t i = 0; i < size; i++) sum[i] = keep ? target[i] : 0;
        for (int64_t e = begin[which]; e < begin[which + 1]; e++) {
            const REAL weight = weights[e];
            FL_GLOBAL const REAL *const column = table + (int64_t)columns[e] * ROWS;
            for (int64_t i = 0; i < size; i++) sum[i] += weight * column[i];
        }
        for (int64_t i = 0; i < size; i++) target[i] = sum[i];
