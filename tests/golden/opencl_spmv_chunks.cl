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
    const int me = (int)get_local_id(0);
    const int count = (int)(n);
    const int lane = me % 4;
    __local double meet_double[128];
    for (int k = 0; k < 1; k++) {
        const int row = ((int)get_group_id(0) * 1 + k) * 32 + me / 4;
        const int live = row < count;
        const int owner = live && lane == 0;
        const int i = (live ? row : count - 1);
        double o2[1];
        /* spmv */ {
            const int64_t row0_start = r0_start[i];
            const int64_t row0_stride = r0_table[i / 4 * 3 + 2];
            const int64_t row0_inverse = r0_table[i / 4 * 3];
            const int row0_chunk = (int)r0_table[i / 4 * 3 + 1];
            const int row0_length = live ? r0_length[i] : 0;
            double total_;
            int64_t j_;
            double v_y_0_0;
            total_ = 0.0;
            if (lane) { total_ = (-0.0); }
            const int for_j_te = row0_length;
            for (int for_j_tc = lane * row0_chunk; for_j_tc < for_j_te; for_j_tc += 4 * row0_chunk) {
                const int for_j_tl = for_j_tc + row0_chunk < for_j_te ? for_j_tc + row0_chunk : for_j_te;
                __attribute__((opencl_unroll_hint(2)))
                for (int for_j_t = for_j_tc; for_j_t < for_j_tl; for_j_t += 1) {
                    j_ = for_j_t;
                    total_ = (total_ + (d0[(fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride))] * d1[((size_t)r0_index[fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride)])]));
                }
            }
            meet_double[me] = total_;
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lane < 2) {
                meet_double[me] = meet_double[me] + meet_double[me + 2];
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lane < 1) {
                meet_double[me] = meet_double[me] + meet_double[me + 1];
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            total_ = meet_double[me - lane];
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            v_y_0_0 = total_;
            o2[0] = v_y_0_0;
        }
        if (owner) {
            d2[((int64_t)i)] = o2[0];
        }
    }
}

