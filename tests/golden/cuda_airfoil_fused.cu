/* res_calc + bres_calc + update + adt_calc: gather */
extern "C" __global__ void __launch_bounds__(128) fl_fused_res_calc_bres_calc_update_adt_calc_0_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    const double *__restrict__ d0,
    const int32_t *__restrict__ m0,
    const double *__restrict__ d1,
    double *d1o,
    const int32_t *__restrict__ m1,
    const double *__restrict__ d2,
    double *d2o,
    double *__restrict__ d3,
    const int32_t *__restrict__ m2,
    const int32_t *__restrict__ m3,
    const int32_t *__restrict__ d4,
    const double *__restrict__ d5,
    const double *d6,
    double *__restrict__ d7,
    double *__restrict__ part2_rms,
    const int32_t *__restrict__ m4,
    const int64_t targets,
    const int32_t *__restrict__ inv_pos,
    const int64_t inv_stride,
    const int64_t base1)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    double g2_rms[1] = {0};
    if (item < targets) {
        const int t = item;
        int64_t o4[1];
        double o6[4];
        double o1[4];
        double o3[4];
        double o2[1];
        o3[0] = 0;
        o3[1] = 0;
        o3[2] = 0;
        o3[3] = 0;
        for (int k = 0; k < 4; k++) {
            const int p = inv_pos[k * inv_stride + item];
            if (p >= 0) {
                if (p < base1) {
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
                else {
                    const int q = p - (int)base1;
                    const int e = q;
                    /* bres_calc */ {
                        int64_t p1_bound[1][1];
                        p1_bound[0][0] = (int64_t)d4[((int64_t)e)];
                        const int2 m2_row = *(const int2 *)(m2 + (int64_t)e * 2);
                        const int m2_0 = m2_row.x;
                        const int m2_1 = m2_row.y;
                        const int m3_0 = m3[e];
                        double p1_x[2][2];
                        { const double2 w = *(const double2 *)(d0 + ((int64_t)m2_0) * 2 + 0); p1_x[0][0] = w.x; p1_x[0][1] = w.y; }
                        { const double2 w = *(const double2 *)(d0 + ((int64_t)m2_1) * 2 + 0); p1_x[1][0] = w.x; p1_x[1][1] = w.y; }
                        double p1_q[1][4];
                        { const double2 w = *(const double2 *)(d1 + ((int64_t)m3_0) * 4 + 0); p1_q[0][0] = w.x; p1_q[0][1] = w.y; }
                        { const double2 w = *(const double2 *)(d1 + ((int64_t)m3_0) * 4 + 2); p1_q[0][2] = w.x; p1_q[0][3] = w.y; }
                        double p1_adt[1][1];
                        p1_adt[0][0] = d2[((int64_t)m3_0)];
                        double p1_res[1][4];
                        const double p1_far[4] = {(double)d5[0], (double)d5[1], (double)d5[2], (double)d5[3]};
                        const double k_gm1 = (double)__longlong_as_double(K[2]);
                        const double k_eps = (double)__longlong_as_double(K[3]);
                        double dx_;
                        double dy_;
                        double ri_;
                        double p1_;
                        double vol1_;
                        double p2_;
                        double vol2_;
                        double mu_;
                        double v_res_0_0 = 0;
                        double v_res_0_1 = 0;
                        double v_res_0_2 = 0;
                        double v_res_0_3 = 0;
                        dx_ = (p1_x[0][0] - p1_x[1][0]);
                        dy_ = (p1_x[0][1] - p1_x[1][1]);
                        ri_ = (1.0 / p1_q[0][0]);
                        p1_ = (k_gm1 * (p1_q[0][3] - ((0.5 * ri_) * ((p1_q[0][1] * p1_q[0][1]) + (p1_q[0][2] * p1_q[0][2])))));
                        if ((((int64_t)p1_bound[0][0]) == 1)) {
                            v_res_0_1 += (p1_ * dy_);
                            v_res_0_2 += (-(p1_ * dx_));
                        } else {
                            vol1_ = (ri_ * ((p1_q[0][1] * dy_) - (p1_q[0][2] * dx_)));
                            ri_ = (1.0 / p1_far[0]);
                            p2_ = (k_gm1 * (p1_far[3] - ((0.5 * ri_) * ((p1_far[1] * p1_far[1]) + (p1_far[2] * p1_far[2])))));
                            vol2_ = (ri_ * ((p1_far[1] * dy_) - (p1_far[2] * dx_)));
                            mu_ = (p1_adt[0][0] * k_eps);
                            v_res_0_0 += ((0.5 * ((vol1_ * p1_q[0][0]) + (vol2_ * p1_far[0]))) + (mu_ * (p1_q[0][0] - p1_far[0])));
                            v_res_0_1 += ((0.5 * ((((vol1_ * p1_q[0][1]) + (p1_ * dy_)) + (vol2_ * p1_far[1])) + (p2_ * dy_))) + (mu_ * (p1_q[0][1] - p1_far[1])));
                            v_res_0_2 += ((0.5 * ((((vol1_ * p1_q[0][2]) - (p1_ * dx_)) + (vol2_ * p1_far[2])) - (p2_ * dx_))) + (mu_ * (p1_q[0][2] - p1_far[2])));
                            v_res_0_3 += ((0.5 * ((vol1_ * (p1_q[0][3] + p1_)) + (vol2_ * (p1_far[3] + p2_)))) + (mu_ * (p1_q[0][3] - p1_far[3])));
                        }
                        p1_res[0][0] = v_res_0_0;
                        p1_res[0][1] = v_res_0_1;
                        p1_res[0][2] = v_res_0_2;
                        p1_res[0][3] = v_res_0_3;
                        { o3[0] = (o3[0] + p1_res[0][0]); o3[1] = (o3[1] + p1_res[0][1]); o3[2] = (o3[2] + p1_res[0][2]); o3[3] = (o3[3] + p1_res[0][3]); }
                    }
                }
            }
        }
        /* update */ {
            { const double2 w = *(const double2 *)(d6 + ((int64_t)t) * 4 + 0); o6[0] = w.x; o6[1] = w.y; }
            { const double2 w = *(const double2 *)(d6 + ((int64_t)t) * 4 + 2); o6[2] = w.x; o6[3] = w.y; }
            o2[0] = d2[((int64_t)t)];
            double adti_;
            double change_;
            double v_q_0_0;
            double v_q_0_1;
            double v_q_0_2;
            double v_q_0_3;
            double v_res_0_0 = o3[0];
            double v_res_0_1 = o3[1];
            double v_res_0_2 = o3[2];
            double v_res_0_3 = o3[3];
            double v_rms_0_0;
            adti_ = (1.0 / o2[0]);
            change_ = (adti_ * v_res_0_0);
            v_q_0_0 = (o6[0] - change_);
            v_res_0_0 = 0.0;
            v_rms_0_0 = (change_ * change_);
            change_ = (adti_ * v_res_0_1);
            v_q_0_1 = (o6[1] - change_);
            v_res_0_1 = 0.0;
            v_rms_0_0 += (change_ * change_);
            change_ = (adti_ * v_res_0_2);
            v_q_0_2 = (o6[2] - change_);
            v_res_0_2 = 0.0;
            v_rms_0_0 += (change_ * change_);
            change_ = (adti_ * v_res_0_3);
            v_q_0_3 = (o6[3] - change_);
            v_res_0_3 = 0.0;
            v_rms_0_0 += (change_ * change_);
            o1[0] = v_q_0_0;
            o1[1] = v_q_0_1;
            o1[2] = v_q_0_2;
            o1[3] = v_q_0_3;
            o3[0] = v_res_0_0;
            o3[1] = v_res_0_1;
            o3[2] = v_res_0_2;
            o3[3] = v_res_0_3;
            g2_rms[0] = v_rms_0_0;
        }
        /* adt_calc */ {
            const int4 m4_row = *(const int4 *)(m4 + (int64_t)t * 4);
            const int m4_0 = m4_row.x;
            const int m4_1 = m4_row.y;
            const int m4_2 = m4_row.z;
            const int m4_3 = m4_row.w;
            double p3_x[4][2];
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m4_0) * 2 + 0); p3_x[0][0] = w.x; p3_x[0][1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m4_1) * 2 + 0); p3_x[1][0] = w.x; p3_x[1][1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m4_2) * 2 + 0); p3_x[2][0] = w.x; p3_x[2][1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m4_3) * 2 + 0); p3_x[3][0] = w.x; p3_x[3][1] = w.y; }
            const double k_gamma = (double)__longlong_as_double(K[4]);
            const double k_cfl = (double)__longlong_as_double(K[5]);
            double ri_;
            double u_;
            double v_;
            double c_;
            double side_u_;
            double side_v_;
            double side_c_;
            double side_dx_;
            double side_dy_;
            double total_;
            double side_u_2_;
            double side_v_2_;
            double side_c_2_;
            double side_dx_2_;
            double side_dy_2_;
            double side_u_3_;
            double side_v_3_;
            double side_c_3_;
            double side_dx_3_;
            double side_dy_3_;
            double side_u_4_;
            double side_v_4_;
            double side_c_4_;
            double side_dx_4_;
            double side_dy_4_;
            double v_adt_0_0;
            ri_ = (1.0 / o1[0]);
            u_ = (ri_ * o1[1]);
            v_ = (ri_ * o1[2]);
            c_ = sqrt(((k_gamma * (k_gamma - 1.0)) * ((ri_ * o1[3]) - (0.5 * ((u_ * u_) + (v_ * v_))))));
            side_u_ = u_;
            side_v_ = v_;
            side_c_ = c_;
            side_dx_ = (p3_x[1][0] - p3_x[0][0]);
            side_dy_ = (p3_x[1][1] - p3_x[0][1]);
            total_ = (fl_abs_double(((side_u_ * side_dy_) - (side_v_ * side_dx_))) + (side_c_ * sqrt(((side_dx_ * side_dx_) + (side_dy_ * side_dy_)))));
            side_u_2_ = u_;
            side_v_2_ = v_;
            side_c_2_ = c_;
            side_dx_2_ = (p3_x[2][0] - p3_x[1][0]);
            side_dy_2_ = (p3_x[2][1] - p3_x[1][1]);
            total_ = (total_ + (fl_abs_double(((side_u_2_ * side_dy_2_) - (side_v_2_ * side_dx_2_))) + (side_c_2_ * sqrt(((side_dx_2_ * side_dx_2_) + (side_dy_2_ * side_dy_2_))))));
            side_u_3_ = u_;
            side_v_3_ = v_;
            side_c_3_ = c_;
            side_dx_3_ = (p3_x[3][0] - p3_x[2][0]);
            side_dy_3_ = (p3_x[3][1] - p3_x[2][1]);
            total_ = (total_ + (fl_abs_double(((side_u_3_ * side_dy_3_) - (side_v_3_ * side_dx_3_))) + (side_c_3_ * sqrt(((side_dx_3_ * side_dx_3_) + (side_dy_3_ * side_dy_3_))))));
            side_u_4_ = u_;
            side_v_4_ = v_;
            side_c_4_ = c_;
            side_dx_4_ = (p3_x[0][0] - p3_x[3][0]);
            side_dy_4_ = (p3_x[0][1] - p3_x[3][1]);
            total_ = (total_ + (fl_abs_double(((side_u_4_ * side_dy_4_) - (side_v_4_ * side_dx_4_))) + (side_c_4_ * sqrt(((side_dx_4_ * side_dx_4_) + (side_dy_4_ * side_dy_4_))))));
            v_adt_0_0 = (total_ / k_cfl);
            o2[0] = v_adt_0_0;
        }
        *(double2 *)(d1o + ((int64_t)t) * 4 + 0) = make_double2(o1[0], o1[1]);
        *(double2 *)(d1o + ((int64_t)t) * 4 + 2) = make_double2(o1[2], o1[3]);
        d2o[((int64_t)t)] = o2[0];
    }
    const int l = (int)threadIdx.x;
    __shared__ double s_double[128];
    {
        double w = g2_rms[0];
        w = w + fl_down_double(w, 16);
        w = w + fl_down_double(w, 8);
        w = w + fl_down_double(w, 4);
        w = w + fl_down_double(w, 2);
        w = w + fl_down_double(w, 1);
        if (l % 32 == 0) s_double[l] = w;
    }
    __syncthreads();
    if (l % 128 == 0 && item < targets) part2_rms[(item / 128) * 1 + 0] = s_double[l] + s_double[l + 32] + s_double[l + 64] + s_double[l + 96];
}

extern "C" __global__ void __launch_bounds__(1024) fl_fused_res_calc_bres_calc_update_adt_calc_0_finish(
    const int64_t n,
    const int64_t *__restrict__ K,
    const double *__restrict__ d0,
    const int32_t *__restrict__ m0,
    const double *__restrict__ d1,
    double *d1o,
    const int32_t *__restrict__ m1,
    const double *__restrict__ d2,
    double *d2o,
    double *__restrict__ d3,
    const int32_t *__restrict__ m2,
    const int32_t *__restrict__ m3,
    const int32_t *__restrict__ d4,
    const double *__restrict__ d5,
    const double *d6,
    double *__restrict__ d7,
    double *__restrict__ part2_rms,
    const int32_t *__restrict__ m4,
    const int64_t targets,
    const int32_t *__restrict__ inv_pos,
    const int64_t inv_stride,
    const int64_t base1)
{
    const int l = (int)threadIdx.x;
    __shared__ double s_double[1024];
    for (int c = 0; c < 1; c++) {
        const int count = (int)((targets + 127) / 128);
        for (int v = l; v < 1024; v += 1024) {
            double total = 0;
            for (int first = v; first < count; first += 16384) {
                double w[16];
                for (int k = 0; k < 16; k++) {
                    const int p = first + k * 1024;
                    w[k] = p < count ? part2_rms[(int64_t)p * 1 + c] : 0;
                }
                for (int k = 0; k < 16; k++) total = total + w[k];
            }
            s_double[v] = total;
        }
        __syncthreads();
        for (int h = 512; h > 0; h /= 2) {
            for (int v = l; v < h; v += 1024)
                s_double[v] = s_double[v] + s_double[v + h];
            __syncthreads();
        }
        if (l == 0) d7[c] = (double)d7[c] + s_double[0];
        __syncthreads();
    }
}


/* adt_calc: direct */
extern "C" __global__ void __launch_bounds__(128) fl_ahead_1_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    const double *__restrict__ d0,
    const int32_t *__restrict__ m0,
    const double *d1,
    const double *d2,
    double *d2o)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    if (item < n) {
        const int i = item;
        double o1[4];
        double o2[1];
        /* adt_calc */ {
            { const double2 w = *(const double2 *)(d1 + ((int64_t)i) * 4 + 0); o1[0] = w.x; o1[1] = w.y; }
            { const double2 w = *(const double2 *)(d1 + ((int64_t)i) * 4 + 2); o1[2] = w.x; o1[3] = w.y; }
            const int4 m0_row = *(const int4 *)(m0 + (int64_t)i * 4);
            const int m0_0 = m0_row.x;
            const int m0_1 = m0_row.y;
            const int m0_2 = m0_row.z;
            const int m0_3 = m0_row.w;
            double p0_x[4][2];
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_0) * 2 + 0); p0_x[0][0] = w.x; p0_x[0][1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_1) * 2 + 0); p0_x[1][0] = w.x; p0_x[1][1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_2) * 2 + 0); p0_x[2][0] = w.x; p0_x[2][1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_3) * 2 + 0); p0_x[3][0] = w.x; p0_x[3][1] = w.y; }
            const double k_gamma = (double)__longlong_as_double(K[0]);
            const double k_cfl = (double)__longlong_as_double(K[1]);
            double ri_;
            double u_;
            double v_;
            double c_;
            double side_u_;
            double side_v_;
            double side_c_;
            double side_dx_;
            double side_dy_;
            double total_;
            double side_u_2_;
            double side_v_2_;
            double side_c_2_;
            double side_dx_2_;
            double side_dy_2_;
            double side_u_3_;
            double side_v_3_;
            double side_c_3_;
            double side_dx_3_;
            double side_dy_3_;
            double side_u_4_;
            double side_v_4_;
            double side_c_4_;
            double side_dx_4_;
            double side_dy_4_;
            double v_adt_0_0;
            ri_ = (1.0 / o1[0]);
            u_ = (ri_ * o1[1]);
            v_ = (ri_ * o1[2]);
            c_ = sqrt(((k_gamma * (k_gamma - 1.0)) * ((ri_ * o1[3]) - (0.5 * ((u_ * u_) + (v_ * v_))))));
            side_u_ = u_;
            side_v_ = v_;
            side_c_ = c_;
            side_dx_ = (p0_x[1][0] - p0_x[0][0]);
            side_dy_ = (p0_x[1][1] - p0_x[0][1]);
            total_ = (fl_abs_double(((side_u_ * side_dy_) - (side_v_ * side_dx_))) + (side_c_ * sqrt(((side_dx_ * side_dx_) + (side_dy_ * side_dy_)))));
            side_u_2_ = u_;
            side_v_2_ = v_;
            side_c_2_ = c_;
            side_dx_2_ = (p0_x[2][0] - p0_x[1][0]);
            side_dy_2_ = (p0_x[2][1] - p0_x[1][1]);
            total_ = (total_ + (fl_abs_double(((side_u_2_ * side_dy_2_) - (side_v_2_ * side_dx_2_))) + (side_c_2_ * sqrt(((side_dx_2_ * side_dx_2_) + (side_dy_2_ * side_dy_2_))))));
            side_u_3_ = u_;
            side_v_3_ = v_;
            side_c_3_ = c_;
            side_dx_3_ = (p0_x[3][0] - p0_x[2][0]);
            side_dy_3_ = (p0_x[3][1] - p0_x[2][1]);
            total_ = (total_ + (fl_abs_double(((side_u_3_ * side_dy_3_) - (side_v_3_ * side_dx_3_))) + (side_c_3_ * sqrt(((side_dx_3_ * side_dx_3_) + (side_dy_3_ * side_dy_3_))))));
            side_u_4_ = u_;
            side_v_4_ = v_;
            side_c_4_ = c_;
            side_dx_4_ = (p0_x[0][0] - p0_x[3][0]);
            side_dy_4_ = (p0_x[0][1] - p0_x[3][1]);
            total_ = (total_ + (fl_abs_double(((side_u_4_ * side_dy_4_) - (side_v_4_ * side_dx_4_))) + (side_c_4_ * sqrt(((side_dx_4_ * side_dx_4_) + (side_dy_4_ * side_dy_4_))))));
            v_adt_0_0 = (total_ / k_cfl);
            o2[0] = v_adt_0_0;
        }
        d2o[((int64_t)i)] = o2[0];
    }
}

