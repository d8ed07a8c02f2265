/* spmv: direct */
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_loop_spmv_run(
    const int64_t n,
    const int64_t from,
    __global const double *restrict d0,
    __global const int32_t *restrict r0_start,
    __global const uint8_t *restrict r0_length,
    __global const int32_t *restrict r0_index,
    const int64_t r0_rows,
    __global const double *restrict d1,
    __global double *restrict d2)
{
    const int item = (int)get_global_id(0);
    const int i = ((int)from & ~1) + 2 * item;
    if (i < n) {
        const int live[2] = {i >= from, i + 1 < n};
        const int at[2] = {i, live[1] ? i + 1 : i};
        double o2[2][1];
        /* spmv */ {
            const int64_t row0_start = r0_start[i / 8] + i % 8;
            const int64_t row0_stride = 8;
            const int row0_length[2] = {live[0] ? r0_length[at[0]] : 0, live[1] ? r0_length[at[1]] : 0};
            double total_[2];
            double v_y_0_0[2];
            __attribute__((opencl_unroll_hint(2)))
            for (int l = 0; l < 2; l++) {
                total_[l] = 0.0;
            }
            int for_j_e1[2];
            __attribute__((opencl_unroll_hint(2)))
            for (int l = 0; l < 2; l++) {
                for_j_e1[l] = live[l] ? (int)(row0_length[l]) : 0;
            }
            const int for_j_t1_most = for_j_e1[0] > for_j_e1[1] ? for_j_e1[0] : for_j_e1[1];
            __attribute__((opencl_unroll_hint(2)))
            for (int for_j_t1 = 0; for_j_t1 < for_j_t1_most; for_j_t1 += 1) {
                const double2 q0_d0_w = *(__global const double2 *)(d0 + (row0_start + (for_j_t1) * row0_stride));
                const double q0_d0[2] = {q0_d0_w.x, q0_d0_w.y};
                const int2 q0_w = *(__global const int2 *)(r0_index + (row0_start + (for_j_t1) * row0_stride));
                const int q0[2] = {q0_w.x, q0_w.y};
                __attribute__((opencl_unroll_hint(2)))
                for (int l = 0; l < 2; l++) if (for_j_t1 < for_j_e1[l]) {
                    int64_t j_;
                    j_ = for_j_t1;
                    total_[l] = (total_[l] + (q0_d0[l] * d1[((size_t)q0[l])]));
                }
            }
            __attribute__((opencl_unroll_hint(2)))
            for (int l = 0; l < 2; l++) {
                v_y_0_0[l] = total_[l];
                o2[l][0] = v_y_0_0[l];
            }
        }
        if (live[0] && live[1]) {
            *(__global double2 *)(d2 + i) = (double2)(o2[0][0], o2[1][0]);
        }
        else if (live[0]) {
            d2[((int64_t)at[0])] = o2[0][0];
        }
        else if (live[1]) {
            d2[((int64_t)at[1])] = o2[1][0];
        }
    }
}

