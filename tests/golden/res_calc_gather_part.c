/* res_calc: gather */
typedef struct {
    int64_t n;
    int64_t threads;
    int64_t from;
    double * d0;
    int32_t * m0;
    double * d1;
    int32_t * m1;
    double * d2;
    double * d3;
    double c0_gm1;
    double c0_eps;
    int64_t targets;
    int64_t tiles;
    int64_t * seg_ptr0;
    int64_t * seg_pos0;
    int32_t * seg_len0;
    int32_t * elem0;
} fl_loop_res_calc_args;

AI void fl_loop_res_calc_run0_4(const fl_loop_res_calc_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict w3) {
    { /* res_calc */
    FL_ALIGN double p0_x[2][2][4];
    uint32_t m0_0[4];
    for (int l = 0; l < 4; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    fl_load2_float64_float64_4(p0_x[0] + 0, A->d0 + 0, 2, m0_0);
    uint32_t m0_1[4];
    for (int l = 0; l < 4; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    fl_load2_float64_float64_4(p0_x[1] + 0, A->d0 + 0, 2, m0_1);
    FL_ALIGN double p0_q[2][4][4];
    uint32_t m1_0[4];
    for (int l = 0; l < 4; l++) m1_0[l] = (uint32_t)A->m1[(i + l) * 2 + 0];
    fl_load4_float64_float64_4(p0_q[0] + 0, A->d1 + 0, 4, m1_0);
    uint32_t m1_1[4];
    for (int l = 0; l < 4; l++) m1_1[l] = (uint32_t)A->m1[(i + l) * 2 + 1];
    fl_load4_float64_float64_4(p0_q[1] + 0, A->d1 + 0, 4, m1_1);
    FL_ALIGN double p0_adt[2][1][4];
    fl_load1_float64_float64_4(p0_adt[0] + 0, A->d2 + 0, 1, m1_0);
    fl_load1_float64_float64_4(p0_adt[1] + 0, A->d2 + 0, 1, m1_1);
    FL_ALIGN double p0_res[2][4][4];
    const double k_gm1 = (double)A->c0_gm1;
    const double k_eps = (double)A->c0_eps;
#pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: res_calc */
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
        dx_ = (p0_x[0][0][l] - p0_x[1][0][l]);
        dy_ = (p0_x[0][1][l] - p0_x[1][1][l]);
        ri_ = (1.0 / p0_q[0][0][l]);
        p1_ = (k_gm1 * (p0_q[0][3][l] - ((0.5 * ri_) * ((p0_q[0][1][l] * p0_q[0][1][l]) + (p0_q[0][2][l] * p0_q[0][2][l])))));
        vol1_ = (ri_ * ((p0_q[0][1][l] * dy_) - (p0_q[0][2][l] * dx_)));
        ri_ = (1.0 / p0_q[1][0][l]);
        p2_ = (k_gm1 * (p0_q[1][3][l] - ((0.5 * ri_) * ((p0_q[1][1][l] * p0_q[1][1][l]) + (p0_q[1][2][l] * p0_q[1][2][l])))));
        vol2_ = (ri_ * ((p0_q[1][1][l] * dy_) - (p0_q[1][2][l] * dx_)));
        mu_ = ((0.5 * (p0_adt[0][0][l] + p0_adt[1][0][l])) * k_eps);
        f_ = ((0.5 * ((vol1_ * p0_q[0][0][l]) + (vol2_ * p0_q[1][0][l]))) + (mu_ * (p0_q[0][0][l] - p0_q[1][0][l])));
        v_res_0_0 = f_;
        v_res_1_0 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][1][l]) + (p1_ * dy_)) + (vol2_ * p0_q[1][1][l])) + (p2_ * dy_))) + (mu_ * (p0_q[0][1][l] - p0_q[1][1][l])));
        v_res_0_1 = f_;
        v_res_1_1 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][2][l]) - (p1_ * dx_)) + (vol2_ * p0_q[1][2][l])) - (p2_ * dx_))) + (mu_ * (p0_q[0][2][l] - p0_q[1][2][l])));
        v_res_0_2 = f_;
        v_res_1_2 = (-f_);
        f_ = ((0.5 * ((vol1_ * (p0_q[0][3][l] + p1_)) + (vol2_ * (p0_q[1][3][l] + p2_)))) + (mu_ * (p0_q[0][3][l] - p0_q[1][3][l])));
        v_res_0_3 = f_;
        v_res_1_3 = (-f_);
        p0_res[0][0][l] = v_res_0_0;
        p0_res[0][1][l] = v_res_0_1;
        p0_res[0][2][l] = v_res_0_2;
        p0_res[0][3][l] = v_res_0_3;
        p0_res[1][0][l] = v_res_1_0;
        p0_res[1][1][l] = v_res_1_1;
        p0_res[1][2][l] = v_res_1_2;
        p0_res[1][3][l] = v_res_1_3;
    } /* end lanes 4: res_calc */
    fl_float64x4 x3_res_0_0[4];
    fl_unpack4_float64_float64_4(x3_res_0_0, p0_res[0] + 0);
    *(fl_float64x4u *)((A->d3 + (size_t)m1_0[0] * 4)) += x3_res_0_0[0];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_1[0] * 4)) -= x3_res_0_0[0];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_0[1] * 4)) += x3_res_0_0[1];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_1[1] * 4)) -= x3_res_0_0[1];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_0[2] * 4)) += x3_res_0_0[2];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_1[2] * 4)) -= x3_res_0_0[2];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_0[3] * 4)) += x3_res_0_0[3];
    *(fl_float64x4u *)((A->d3 + (size_t)m1_1[3] * 4)) -= x3_res_0_0[3];
    }
}

AI void fl_loop_res_calc_run0_1(const fl_loop_res_calc_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict w3) {
    { /* res_calc */
    FL_ALIGN double p0_x[2][2][1];
    uint32_t m0_0[1];
    for (int l = 0; l < 1; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[0][0][l] = (double)A->d0[((size_t)m0_0[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[0][1][l] = (double)A->d0[((size_t)m0_0[l]) * 2 + 1];
    uint32_t m0_1[1];
    for (int l = 0; l < 1; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    for (int l = 0; l < 1; l++) p0_x[1][0][l] = (double)A->d0[((size_t)m0_1[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[1][1][l] = (double)A->d0[((size_t)m0_1[l]) * 2 + 1];
    FL_ALIGN double p0_q[2][4][1];
    uint32_t m1_0[1];
    for (int l = 0; l < 1; l++) m1_0[l] = (uint32_t)A->m1[(i + l) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_q[0][0][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 0];
    for (int l = 0; l < 1; l++) p0_q[0][1][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 1];
    for (int l = 0; l < 1; l++) p0_q[0][2][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 2];
    for (int l = 0; l < 1; l++) p0_q[0][3][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 3];
    uint32_t m1_1[1];
    for (int l = 0; l < 1; l++) m1_1[l] = (uint32_t)A->m1[(i + l) * 2 + 1];
    for (int l = 0; l < 1; l++) p0_q[1][0][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 0];
    for (int l = 0; l < 1; l++) p0_q[1][1][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 1];
    for (int l = 0; l < 1; l++) p0_q[1][2][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 2];
    for (int l = 0; l < 1; l++) p0_q[1][3][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 3];
    FL_ALIGN double p0_adt[2][1][1];
    for (int l = 0; l < 1; l++) p0_adt[0][0][l] = (double)A->d2[((size_t)m1_0[l])];
    for (int l = 0; l < 1; l++) p0_adt[1][0][l] = (double)A->d2[((size_t)m1_1[l])];
    FL_ALIGN double p0_res[2][4][1];
    const double k_gm1 = (double)A->c0_gm1;
    const double k_eps = (double)A->c0_eps;
    for (int l = 0; l < 1; l++) { /* lanes 1: res_calc */
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
        dx_ = (p0_x[0][0][0] - p0_x[1][0][0]);
        dy_ = (p0_x[0][1][0] - p0_x[1][1][0]);
        ri_ = (1.0 / p0_q[0][0][0]);
        p1_ = (k_gm1 * (p0_q[0][3][0] - ((0.5 * ri_) * ((p0_q[0][1][0] * p0_q[0][1][0]) + (p0_q[0][2][0] * p0_q[0][2][0])))));
        vol1_ = (ri_ * ((p0_q[0][1][0] * dy_) - (p0_q[0][2][0] * dx_)));
        ri_ = (1.0 / p0_q[1][0][0]);
        p2_ = (k_gm1 * (p0_q[1][3][0] - ((0.5 * ri_) * ((p0_q[1][1][0] * p0_q[1][1][0]) + (p0_q[1][2][0] * p0_q[1][2][0])))));
        vol2_ = (ri_ * ((p0_q[1][1][0] * dy_) - (p0_q[1][2][0] * dx_)));
        mu_ = ((0.5 * (p0_adt[0][0][0] + p0_adt[1][0][0])) * k_eps);
        f_ = ((0.5 * ((vol1_ * p0_q[0][0][0]) + (vol2_ * p0_q[1][0][0]))) + (mu_ * (p0_q[0][0][0] - p0_q[1][0][0])));
        v_res_0_0 = f_;
        v_res_1_0 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][1][0]) + (p1_ * dy_)) + (vol2_ * p0_q[1][1][0])) + (p2_ * dy_))) + (mu_ * (p0_q[0][1][0] - p0_q[1][1][0])));
        v_res_0_1 = f_;
        v_res_1_1 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][2][0]) - (p1_ * dx_)) + (vol2_ * p0_q[1][2][0])) - (p2_ * dx_))) + (mu_ * (p0_q[0][2][0] - p0_q[1][2][0])));
        v_res_0_2 = f_;
        v_res_1_2 = (-f_);
        f_ = ((0.5 * ((vol1_ * (p0_q[0][3][0] + p1_)) + (vol2_ * (p0_q[1][3][0] + p2_)))) + (mu_ * (p0_q[0][3][0] - p0_q[1][3][0])));
        v_res_0_3 = f_;
        v_res_1_3 = (-f_);
        p0_res[0][0][0] = v_res_0_0;
        p0_res[0][1][0] = v_res_0_1;
        p0_res[0][2][0] = v_res_0_2;
        p0_res[0][3][0] = v_res_0_3;
        p0_res[1][0][0] = v_res_1_0;
        p0_res[1][1][0] = v_res_1_1;
        p0_res[1][2][0] = v_res_1_2;
        p0_res[1][3][0] = v_res_1_3;
    } /* end lanes 1: res_calc */
    for (int l = 0; l < 1; l++) {
        A->d3[((size_t)m1_0[l]) * 4 + 0] += (double)p0_res[0][0][l];
        A->d3[((size_t)m1_0[l]) * 4 + 1] += (double)p0_res[0][1][l];
        A->d3[((size_t)m1_0[l]) * 4 + 2] += (double)p0_res[0][2][l];
        A->d3[((size_t)m1_0[l]) * 4 + 3] += (double)p0_res[0][3][l];
        A->d3[((size_t)m1_1[l]) * 4 + 0] += (double)p0_res[1][0][l];
        A->d3[((size_t)m1_1[l]) * 4 + 1] += (double)p0_res[1][1][l];
        A->d3[((size_t)m1_1[l]) * 4 + 2] += (double)p0_res[1][2][l];
        A->d3[((size_t)m1_1[l]) * 4 + 3] += (double)p0_res[1][3][l];
    }
    }
}

static __attribute__((noinline)) void fl_loop_res_calc_run0(const fl_loop_res_calc_args *restrict A, int64_t i, const int64_t end, const int64_t t0, const uint32_t tn, double *restrict w3) {
    for (; i + 4 <= end; i += 4) fl_loop_res_calc_run0_4(A, i, t0, tn, w3);
    for (; i < end; i++) fl_loop_res_calc_run0_1(A, i, t0, tn, w3);
}

AI void fl_loop_res_calc_list0_4(const fl_loop_res_calc_args *restrict A, const int64_t i, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict w3) {
    uint32_t e[4];
    for (int l = 0; l < 4; l++) e[l] = (uint32_t)L[i + l];
    { /* res_calc */
    FL_ALIGN double p0_x[2][2][4];
    uint32_t m0_0[4];
    for (int l = 0; l < 4; l++) m0_0[l] = (uint32_t)A->m0[(size_t)e[l] * 2 + 0];
    fl_load2_float64_float64_4(p0_x[0] + 0, A->d0 + 0, 2, m0_0);
    uint32_t m0_1[4];
    for (int l = 0; l < 4; l++) m0_1[l] = (uint32_t)A->m0[(size_t)e[l] * 2 + 1];
    fl_load2_float64_float64_4(p0_x[1] + 0, A->d0 + 0, 2, m0_1);
    FL_ALIGN double p0_q[2][4][4];
    uint32_t m1_0[4];
    for (int l = 0; l < 4; l++) m1_0[l] = (uint32_t)A->m1[(size_t)e[l] * 2 + 0];
    fl_load4_float64_float64_4(p0_q[0] + 0, A->d1 + 0, 4, m1_0);
    uint32_t m1_1[4];
    for (int l = 0; l < 4; l++) m1_1[l] = (uint32_t)A->m1[(size_t)e[l] * 2 + 1];
    fl_load4_float64_float64_4(p0_q[1] + 0, A->d1 + 0, 4, m1_1);
    FL_ALIGN double p0_adt[2][1][4];
    fl_load1_float64_float64_4(p0_adt[0] + 0, A->d2 + 0, 1, m1_0);
    fl_load1_float64_float64_4(p0_adt[1] + 0, A->d2 + 0, 1, m1_1);
    FL_ALIGN double p0_res[2][4][4];
    const double k_gm1 = (double)A->c0_gm1;
    const double k_eps = (double)A->c0_eps;
#pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: res_calc */
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
        dx_ = (p0_x[0][0][l] - p0_x[1][0][l]);
        dy_ = (p0_x[0][1][l] - p0_x[1][1][l]);
        ri_ = (1.0 / p0_q[0][0][l]);
        p1_ = (k_gm1 * (p0_q[0][3][l] - ((0.5 * ri_) * ((p0_q[0][1][l] * p0_q[0][1][l]) + (p0_q[0][2][l] * p0_q[0][2][l])))));
        vol1_ = (ri_ * ((p0_q[0][1][l] * dy_) - (p0_q[0][2][l] * dx_)));
        ri_ = (1.0 / p0_q[1][0][l]);
        p2_ = (k_gm1 * (p0_q[1][3][l] - ((0.5 * ri_) * ((p0_q[1][1][l] * p0_q[1][1][l]) + (p0_q[1][2][l] * p0_q[1][2][l])))));
        vol2_ = (ri_ * ((p0_q[1][1][l] * dy_) - (p0_q[1][2][l] * dx_)));
        mu_ = ((0.5 * (p0_adt[0][0][l] + p0_adt[1][0][l])) * k_eps);
        f_ = ((0.5 * ((vol1_ * p0_q[0][0][l]) + (vol2_ * p0_q[1][0][l]))) + (mu_ * (p0_q[0][0][l] - p0_q[1][0][l])));
        v_res_0_0 = f_;
        v_res_1_0 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][1][l]) + (p1_ * dy_)) + (vol2_ * p0_q[1][1][l])) + (p2_ * dy_))) + (mu_ * (p0_q[0][1][l] - p0_q[1][1][l])));
        v_res_0_1 = f_;
        v_res_1_1 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][2][l]) - (p1_ * dx_)) + (vol2_ * p0_q[1][2][l])) - (p2_ * dx_))) + (mu_ * (p0_q[0][2][l] - p0_q[1][2][l])));
        v_res_0_2 = f_;
        v_res_1_2 = (-f_);
        f_ = ((0.5 * ((vol1_ * (p0_q[0][3][l] + p1_)) + (vol2_ * (p0_q[1][3][l] + p2_)))) + (mu_ * (p0_q[0][3][l] - p0_q[1][3][l])));
        v_res_0_3 = f_;
        v_res_1_3 = (-f_);
        p0_res[0][0][l] = v_res_0_0;
        p0_res[0][1][l] = v_res_0_1;
        p0_res[0][2][l] = v_res_0_2;
        p0_res[0][3][l] = v_res_0_3;
        p0_res[1][0][l] = v_res_1_0;
        p0_res[1][1][l] = v_res_1_1;
        p0_res[1][2][l] = v_res_1_2;
        p0_res[1][3][l] = v_res_1_3;
    } /* end lanes 4: res_calc */
    fl_float64x4 x3_res_0_0[4];
    fl_unpack4_float64_float64_4(x3_res_0_0, p0_res[0] + 0);
    *(fl_float64x4u *)(((m1_0[0] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_0[0] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[0];
    *(fl_float64x4u *)(((m1_1[0] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_1[0] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[0];
    *(fl_float64x4u *)(((m1_0[1] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_0[1] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[1];
    *(fl_float64x4u *)(((m1_1[1] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_1[1] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[1];
    *(fl_float64x4u *)(((m1_0[2] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_0[2] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[2];
    *(fl_float64x4u *)(((m1_1[2] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_1[2] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[2];
    *(fl_float64x4u *)(((m1_0[3] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_0[3] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[3];
    *(fl_float64x4u *)(((m1_1[3] - (uint32_t)t0) < tn ? (A->d3 + t0 * 4) + (size_t)(m1_1[3] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[3];
    }
}

AI void fl_loop_res_calc_list0_1(const fl_loop_res_calc_args *restrict A, const int64_t i, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict w3) {
    uint32_t e[1];
    for (int l = 0; l < 1; l++) e[l] = (uint32_t)L[i + l];
    { /* res_calc */
    FL_ALIGN double p0_x[2][2][1];
    uint32_t m0_0[1];
    for (int l = 0; l < 1; l++) m0_0[l] = (uint32_t)A->m0[(size_t)e[l] * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[0][0][l] = (double)A->d0[((size_t)m0_0[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[0][1][l] = (double)A->d0[((size_t)m0_0[l]) * 2 + 1];
    uint32_t m0_1[1];
    for (int l = 0; l < 1; l++) m0_1[l] = (uint32_t)A->m0[(size_t)e[l] * 2 + 1];
    for (int l = 0; l < 1; l++) p0_x[1][0][l] = (double)A->d0[((size_t)m0_1[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[1][1][l] = (double)A->d0[((size_t)m0_1[l]) * 2 + 1];
    FL_ALIGN double p0_q[2][4][1];
    uint32_t m1_0[1];
    for (int l = 0; l < 1; l++) m1_0[l] = (uint32_t)A->m1[(size_t)e[l] * 2 + 0];
    for (int l = 0; l < 1; l++) p0_q[0][0][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 0];
    for (int l = 0; l < 1; l++) p0_q[0][1][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 1];
    for (int l = 0; l < 1; l++) p0_q[0][2][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 2];
    for (int l = 0; l < 1; l++) p0_q[0][3][l] = (double)A->d1[((size_t)m1_0[l]) * 4 + 3];
    uint32_t m1_1[1];
    for (int l = 0; l < 1; l++) m1_1[l] = (uint32_t)A->m1[(size_t)e[l] * 2 + 1];
    for (int l = 0; l < 1; l++) p0_q[1][0][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 0];
    for (int l = 0; l < 1; l++) p0_q[1][1][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 1];
    for (int l = 0; l < 1; l++) p0_q[1][2][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 2];
    for (int l = 0; l < 1; l++) p0_q[1][3][l] = (double)A->d1[((size_t)m1_1[l]) * 4 + 3];
    FL_ALIGN double p0_adt[2][1][1];
    for (int l = 0; l < 1; l++) p0_adt[0][0][l] = (double)A->d2[((size_t)m1_0[l])];
    for (int l = 0; l < 1; l++) p0_adt[1][0][l] = (double)A->d2[((size_t)m1_1[l])];
    FL_ALIGN double p0_res[2][4][1];
    const double k_gm1 = (double)A->c0_gm1;
    const double k_eps = (double)A->c0_eps;
    for (int l = 0; l < 1; l++) { /* lanes 1: res_calc */
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
        dx_ = (p0_x[0][0][0] - p0_x[1][0][0]);
        dy_ = (p0_x[0][1][0] - p0_x[1][1][0]);
        ri_ = (1.0 / p0_q[0][0][0]);
        p1_ = (k_gm1 * (p0_q[0][3][0] - ((0.5 * ri_) * ((p0_q[0][1][0] * p0_q[0][1][0]) + (p0_q[0][2][0] * p0_q[0][2][0])))));
        vol1_ = (ri_ * ((p0_q[0][1][0] * dy_) - (p0_q[0][2][0] * dx_)));
        ri_ = (1.0 / p0_q[1][0][0]);
        p2_ = (k_gm1 * (p0_q[1][3][0] - ((0.5 * ri_) * ((p0_q[1][1][0] * p0_q[1][1][0]) + (p0_q[1][2][0] * p0_q[1][2][0])))));
        vol2_ = (ri_ * ((p0_q[1][1][0] * dy_) - (p0_q[1][2][0] * dx_)));
        mu_ = ((0.5 * (p0_adt[0][0][0] + p0_adt[1][0][0])) * k_eps);
        f_ = ((0.5 * ((vol1_ * p0_q[0][0][0]) + (vol2_ * p0_q[1][0][0]))) + (mu_ * (p0_q[0][0][0] - p0_q[1][0][0])));
        v_res_0_0 = f_;
        v_res_1_0 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][1][0]) + (p1_ * dy_)) + (vol2_ * p0_q[1][1][0])) + (p2_ * dy_))) + (mu_ * (p0_q[0][1][0] - p0_q[1][1][0])));
        v_res_0_1 = f_;
        v_res_1_1 = (-f_);
        f_ = ((0.5 * ((((vol1_ * p0_q[0][2][0]) - (p1_ * dx_)) + (vol2_ * p0_q[1][2][0])) - (p2_ * dx_))) + (mu_ * (p0_q[0][2][0] - p0_q[1][2][0])));
        v_res_0_2 = f_;
        v_res_1_2 = (-f_);
        f_ = ((0.5 * ((vol1_ * (p0_q[0][3][0] + p1_)) + (vol2_ * (p0_q[1][3][0] + p2_)))) + (mu_ * (p0_q[0][3][0] - p0_q[1][3][0])));
        v_res_0_3 = f_;
        v_res_1_3 = (-f_);
        p0_res[0][0][0] = v_res_0_0;
        p0_res[0][1][0] = v_res_0_1;
        p0_res[0][2][0] = v_res_0_2;
        p0_res[0][3][0] = v_res_0_3;
        p0_res[1][0][0] = v_res_1_0;
        p0_res[1][1][0] = v_res_1_1;
        p0_res[1][2][0] = v_res_1_2;
        p0_res[1][3][0] = v_res_1_3;
    } /* end lanes 1: res_calc */
    for (int l = 0; l < 1; l++) {
        if ((m1_0[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_0[l]) * 4 + 0] += (double)p0_res[0][0][l];
        if ((m1_0[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_0[l]) * 4 + 1] += (double)p0_res[0][1][l];
        if ((m1_0[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_0[l]) * 4 + 2] += (double)p0_res[0][2][l];
        if ((m1_0[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_0[l]) * 4 + 3] += (double)p0_res[0][3][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_1[l]) * 4 + 0] += (double)p0_res[1][0][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_1[l]) * 4 + 1] += (double)p0_res[1][1][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_1[l]) * 4 + 2] += (double)p0_res[1][2][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) A->d3[((size_t)m1_1[l]) * 4 + 3] += (double)p0_res[1][3][l];
    }
    }
}

static __attribute__((noinline)) void fl_loop_res_calc_list0(const fl_loop_res_calc_args *restrict A, int64_t i, const int64_t end, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict w3) {
    for (; i + 4 <= end; i += 4) fl_loop_res_calc_list0_4(A, i, L, t0, tn, w3);
    for (; i < end; i++) fl_loop_res_calc_list0_1(A, i, L, t0, tn, w3);
}

void fl_loop_res_calc(const int64_t *S) {
    const fl_loop_res_calc_args *const A = (const fl_loop_res_calc_args *)S;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t tile = 0; tile < A->tiles; tile++) {
        const int64_t t0 = A->from + tile * 1024;
        const int64_t t1 = t0 + 1024 < A->targets ? t0 + 1024 : A->targets;
        const uint32_t tn = (uint32_t)(t1 - t0);
        FL_ALIGN double w3[8] = {0};
        for (int64_t s = A->seg_ptr0[tile]; s < A->seg_ptr0[tile + 1]; s++) {
            const int64_t pos = A->seg_pos0[s], length = A->seg_len0[s];
            const int32_t *const L = A->elem0;
            if (length > 0)
                fl_loop_res_calc_run0(A, L[pos], L[pos] + length, t0, tn, w3);
            else
                fl_loop_res_calc_list0(A, pos, pos - length, L, t0, tn, w3);
        }
    }
}
