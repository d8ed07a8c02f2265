/* res_calc: gather */
extern "C" __global__ void __launch_bounds__(128) fl_loop_res_calc_run(
    const int64_t n,
    const int64_t from,
    const int64_t *__restrict__ K,
    const double *__restrict__ d0,
    const int32_t *__restrict__ m0,
    const double *__restrict__ d1,
    const int32_t *__restrict__ m1,
    const double *__restrict__ d2,
    double *__restrict__ d3,
    const int64_t targets,
    const int32_t *__restrict__ inv_pos,
    const int64_t inv_stride)
{
    const int item = (int)from + (int)(blockIdx.x * 128 + threadIdx.x);
    if (item < targets) {
        const int t = item;
        double o3[4];
        { const double2 w = *(const double2 *)(d3 + ((int64_t)t) * 4 + 0); o3[0] = w.x; o3[1] = w.y; }
        { const double2 w = *(const double2 *)(d3 + ((int64_t)t) * 4 + 2); o3[2] = w.x; o3[3] = w.y; }
        for (int k = 0; k < 4; k++) {
            const int p = inv_pos[k * inv_stride + item];
            if (p >= 0) {
                 {
                    const int q = p;
                    const int e = q / 2, leg = q % 2;
                    /* res_calc */ {
                        const int2 m0_row = *(const int2 *)(m0 + (int64_t)e * 2);
                        const int m0_0 = m0_row.x;
                        const int m0_1 = m0_row.y;
                        const int2 m1_row = *(const int2 *)(m1 + (int64_t)e * 2);
                        const int m1_0 = m1_row.x;
                        const int m1_1 = m1_row.y;
                        double p0_x[2][2];
                        { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_0) * 2 + 0); p0_x[0][0] = w.x; p0_x[0][1] = w.y; }
                        { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_1) * 2 + 0); p0_x[1][0] = w.x; p0_x[1][1] = w.y; }
                        double p0_q[2][4];
                        { const double2 w = *(const double2 *)(d1 + ((int64_t)m1_0) * 4 + 0); p0_q[0][0] = w.x; p0_q[0][1] = w.y; }
                        { const double2 w = *(const double2 *)(d1 + ((int64_t)m1_0) * 4 + 2); p0_q[0][2] = w.x; p0_q[0][3] = w.y; }
                        { const double2 w = *(const double2 *)(d1 + ((int64_t)m1_1) * 4 + 0); p0_q[1][0] = w.x; p0_q[1][1] = w.y; }
                        { const double2 w = *(const double2 *)(d1 + ((int64_t)m1_1) * 4 + 2); p0_q[1][2] = w.x; p0_q[1][3] = w.y; }
                        double p0_adt[2][1];
                        p0_adt[0][0] = d2[((int64_t)m1_0)];
                        p0_adt[1][0] = d2[((int64_t)m1_1)];
                        double p0_res[2][4];
                        const double k_gm1 = (double)__longlong_as_double(K[0]);
                        const double k_eps = (double)__longlong_as_double(K[1]);
                        double dx_;
                        double dy_;
                        double ri_;
                        double p1_;
                        double vol1_;
                        double p2_;
                        double vol2_;
                        double mu_;
                        double f_;
                        double v_res_0_0;
                        double v_res_0_1;
                        double v_res_0_2;
                        double v_res_0_3;
                        double v_res_1_0;
                        double v_res_1_1;
                        double v_res_1_2;
                        double v_res_1_3;
                        dx_ = (p0_x[0][0] - p0_x[1][0]);
                        dy_ = (p0_x[0][1] - p0_x[1][1]);
                        ri_ = (1.0 / p0_q[0][0]);
                        p1_ = (k_gm1 * (p0_q[0][3] - ((0.5 * ri_) * ((p0_q[0][1] * p0_q[0][1]) + (p0_q[0][2] * p0_q[0][2])))));
                        vol1_ = (ri_ * ((p0_q[0][1] * dy_) - (p0_q[0][2] * dx_)));
                        ri_ = (1.0 / p0_q[1][0]);
                        p2_ = (k_gm1 * (p0_q[1][3] - ((0.5 * ri_) * ((p0_q[1][1] * p0_q[1][1]) + (p0_q[1][2] * p0_q[1][2])))));
                        vol2_ = (ri_ * ((p0_q[1][1] * dy_) - (p0_q[1][2] * dx_)));
                        mu_ = ((0.5 * (p0_adt[0][0] + p0_adt[1][0])) * k_eps);
                        f_ = ((0.5 * ((vol1_ * p0_q[0][0]) + (vol2_ * p0_q[1][0]))) + (mu_ * (p0_q[0][0] - p0_q[1][0])));
                        v_res_0_0 = f_;
                        v_res_1_0 = (-f_);
                        f_ = ((0.5 * ((((vol1_ * p0_q[0][1]) + (p1_ * dy_)) + (vol2_ * p0_q[1][1])) + (p2_ * dy_))) + (mu_ * (p0_q[0][1] - p0_q[1][1])));
                        v_res_0_1 = f_;
                        v_res_1_1 = (-f_);
                        f_ = ((0.5 * ((((vol1_ * p0_q[0][2]) - (p1_ * dx_)) + (vol2_ * p0_q[1][2])) - (p2_ * dx_))) + (mu_ * (p0_q[0][2] - p0_q[1][2])));
                        v_res_0_2 = f_;
                        v_res_1_2 = (-f_);
                        f_ = ((0.5 * ((vol1_ * (p0_q[0][3] + p1_)) + (vol2_ * (p0_q[1][3] + p2_)))) + (mu_ * (p0_q[0][3] - p0_q[1][3])));
                        v_res_0_3 = f_;
                        v_res_1_3 = (-f_);
                        p0_res[0][0] = v_res_0_0;
                        p0_res[0][1] = v_res_0_1;
                        p0_res[0][2] = v_res_0_2;
                        p0_res[0][3] = v_res_0_3;
                        p0_res[1][0] = v_res_1_0;
                        p0_res[1][1] = v_res_1_1;
                        p0_res[1][2] = v_res_1_2;
                        p0_res[1][3] = v_res_1_3;
                        if (leg == 0) { o3[0] = (o3[0] + p0_res[0][0]); o3[1] = (o3[1] + p0_res[0][1]); o3[2] = (o3[2] + p0_res[0][2]); o3[3] = (o3[3] + p0_res[0][3]); }
                        if (leg == 1) { o3[0] = (o3[0] + p0_res[1][0]); o3[1] = (o3[1] + p0_res[1][1]); o3[2] = (o3[2] + p0_res[1][2]); o3[3] = (o3[3] + p0_res[1][3]); }
                    }
                }
            }
        }
        *(double2 *)(d3 + ((int64_t)t) * 4 + 0) = make_double2(o3[0], o3[1]);
        *(double2 *)(d3 + ((int64_t)t) * 4 + 2) = make_double2(o3[2], o3[3]);
    }
}

