/* Place of entry j of a row in chunks; inverse = ceil(2^32 / chunk), exact while j * chunk < 2^32. */
AI int64_t fl_in_chunks(int64_t start, int64_t j, int64_t inverse, int64_t chunk, int64_t stride) {
    const int64_t q = (j * inverse) >> 32;
    return start + q + (j - q * chunk) * stride;
}

/* spmv: direct */
extern "C" __global__ void __launch_bounds__(128) fl_loop_spmv_run(
    const int64_t n,
    const double *__restrict__ d0,
    const int32_t *__restrict__ r0_start,
    const uint8_t *__restrict__ r0_length,
    const int32_t *__restrict__ r0_index,
    const int64_t r0_rows,
    const int64_t *__restrict__ r0_table,
    const double *__restrict__ d1,
    double *__restrict__ d2)
{
    const int me = (int)threadIdx.x;
    const int count = (int)(n);
    const int lane = me % 4;
    for (int k = 0; k < 1; k++) {
        const int row = ((int)blockIdx.x * 1 + k) * 32 + me / 4;
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
                #pragma unroll 2
                for (int for_j_t = for_j_tc; for_j_t < for_j_tl; for_j_t += 1) {
                    j_ = for_j_t;
                    total_ = (total_ + (d0[(fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride))] * d1[((size_t)r0_index[fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride)])]));
                }
            }
            total_ = total_ + fl_swap_double(total_, 2, 4);
            total_ = total_ + fl_swap_double(total_, 1, 4);
            v_y_0_0 = total_;
            o2[0] = v_y_0_0;
        }
        if (owner) {
            d2[((int64_t)i)] = o2[0];
        }
    }
}

