/* Place of entry j of a row in chunks; inverse = ceil(2^32 / chunk), exact while j * chunk < 2^32. */
AI int64_t fl_in_chunks(int64_t start, int64_t j, int64_t inverse, int64_t chunk, int64_t stride) {
    const int64_t q = (j * inverse) >> 32;
    return start + q + (j - q * chunk) * stride;
}

/* spmv: direct */
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_loop_spmv_run(
    const int64_t n,
    __global const double *restrict d0,
    __global const int32_t *restrict r0_start,
    __global const uint8_t *restrict r0_length,
    __global const int32_t *restrict r0_index,
    const int64_t r0_rows,
    __global const int64_t *restrict r0_table,
    __global const double *restrict d1,
    __global double *restrict d2)
{
    const int item = (int)get_global_id(0);
    if (item < n) {
        const int i = item;
        double o2[1];
        /* spmv */ {
            const int64_t row0_start = r0_start[i];
            const int64_t row0_stride = r0_table[i / 4 * 3 + 2];
            const int64_t row0_inverse = r0_table[i / 4 * 3];
            const int row0_chunk = (int)r0_table[i / 4 * 3 + 1];
            const int row0_length = r0_length[i];
            double total_;
            int64_t j_;
            double v_y_0_0;
            total_ = 0.0;
            __attribute__((opencl_unroll_hint(2)))
            for (int64_t for_j_t = 0, for_j_te = row0_length; for_j_t < for_j_te; for_j_t += 1) {
                j_ = for_j_t;
                total_ = (total_ + (d0[(fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride))] * d1[((size_t)r0_index[fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride)])]));
            }
            v_y_0_0 = total_;
            o2[0] = v_y_0_0;
        }
        d2[((int64_t)i)] = o2[0];
    }
}

