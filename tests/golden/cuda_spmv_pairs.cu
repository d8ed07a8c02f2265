/* spmv: direct */
extern "C" __global__ void __launch_bounds__(128) fl_loop_spmv_run(
    const int64_t n,
    const double *__restrict__ d0,
    const int32_t *__restrict__ r0_start,
    const uint8_t *__restrict__ r0_length,
    const int32_t *__restrict__ r0_index,
    const int64_t r0_rows,
    const double *__restrict__ d1,
    double *__restrict__ d2)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    const int i = 2 * item;
    if (i < n) {
        const int live[2] = {1, i + 1 < n};
        const int at[2] = {i, live[1] ? i + 1 : i};
        double o2[2][1];
        /* spmv */ {
            const int64_t row0_start = r0_start[i / 8] + i % 8;
            const int64_t row0_stride = 8;
            const int row0_length[2] = {live[0] ? r0_length[at[0]] : 0, live[1] ? r0_length[at[1]] : 0};
            double total_[2];
            double v_y_0_0[2];
            #pragma unroll 2
            for (int l = 0; l < 2; l++) {
                total_[l] = 0.0;
            }
            int for_j_e1[2];
            #pragma unroll 2
            for (int l = 0; l < 2; l++) {
                for_j_e1[l] = live[l] ? (int)(row0_length[l]) : 0;
            }
            const int for_j_t1_most = for_j_e1[0] > for_j_e1[1] ? for_j_e1[0] : for_j_e1[1];
            #pragma unroll 2
            for (int for_j_t1 = 0; for_j_t1 < for_j_t1_most; for_j_t1 += 1) {
                const double2 q0_d0_w = *(const double2 *)(d0 + (row0_start + (for_j_t1) * row0_stride));
                const double q0_d0[2] = {q0_d0_w.x, q0_d0_w.y};
                const int2 q0_w = *(const int2 *)(r0_index + (row0_start + (for_j_t1) * row0_stride));
                const int q0[2] = {q0_w.x, q0_w.y};
                #pragma unroll 2
                for (int l = 0; l < 2; l++) if (for_j_t1 < for_j_e1[l]) {
                    int64_t j_;
                    j_ = for_j_t1;
                    total_[l] = (total_[l] + (q0_d0[l] * d1[((size_t)q0[l])]));
                }
            }
            #pragma unroll 2
            for (int l = 0; l < 2; l++) {
                v_y_0_0[l] = total_[l];
                o2[l][0] = v_y_0_0[l];
            }
        }
        if (live[0] && live[1]) {
            *(double2 *)(d2 + i) = make_double2(o2[0][0], o2[1][0]);
        }
        else if (live[0]) {
            d2[((int64_t)at[0])] = o2[0][0];
        }
        else if (live[1]) {
            d2[((int64_t)at[1])] = o2[1][0];
        }
    }
}

