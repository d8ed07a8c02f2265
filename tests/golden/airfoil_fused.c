/* res_calc + bres_calc + update + adt_calc: gather */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int32_t * m0;
    double * d1;
    double * d1o;
    int32_t * m1;
    double * d2;
    double * d2o;
    double * d3;
    double c0_gm1;
    double c0_eps;
    int32_t * m2;
    int32_t * m3;
    int32_t * d4;
    double * d5;
    double c1_gm1;
    double c1_eps;
    double * d6;
    double * d7;
    double * part2_rms;
    int32_t * m4;
    double c3_gamma;
    double c3_cfl;
    int64_t targets;
    int64_t tiles;
    int64_t * seg_ptr0;
    int64_t * seg_pos0;
    int32_t * seg_len0;
    int32_t * elem0;
    int64_t * seg_ptr1;
    int64_t * seg_pos1;
    int32_t * seg_len1;
    int32_t * elem1;
} fl_fused_res_calc_bres_calc_update_adt_calc_0_args;

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_run0_4(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
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
    *(fl_float64x4u *)((b3 + (size_t)(m1_0[0] - (uint32_t)t0) * 4)) += x3_res_0_0[0];
    *(fl_float64x4u *)((b3 + (size_t)(m1_1[0] - (uint32_t)t0) * 4)) -= x3_res_0_0[0];
    *(fl_float64x4u *)((b3 + (size_t)(m1_0[1] - (uint32_t)t0) * 4)) += x3_res_0_0[1];
    *(fl_float64x4u *)((b3 + (size_t)(m1_1[1] - (uint32_t)t0) * 4)) -= x3_res_0_0[1];
    *(fl_float64x4u *)((b3 + (size_t)(m1_0[2] - (uint32_t)t0) * 4)) += x3_res_0_0[2];
    *(fl_float64x4u *)((b3 + (size_t)(m1_1[2] - (uint32_t)t0) * 4)) -= x3_res_0_0[2];
    *(fl_float64x4u *)((b3 + (size_t)(m1_0[3] - (uint32_t)t0) * 4)) += x3_res_0_0[3];
    *(fl_float64x4u *)((b3 + (size_t)(m1_1[3] - (uint32_t)t0) * 4)) -= x3_res_0_0[3];
    }
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_run0_1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
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
        b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 0] += (double)p0_res[0][0][l];
        b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 1] += (double)p0_res[0][1][l];
        b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 2] += (double)p0_res[0][2][l];
        b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 3] += (double)p0_res[0][3][l];
        b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 0] += (double)p0_res[1][0][l];
        b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 1] += (double)p0_res[1][1][l];
        b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 2] += (double)p0_res[1][2][l];
        b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 3] += (double)p0_res[1][3][l];
    }
    }
}

static __attribute__((noinline)) void fl_fused_res_calc_bres_calc_update_adt_calc_0_run0(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, int64_t i, const int64_t end, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    for (; i + 4 <= end; i += 4) fl_fused_res_calc_bres_calc_update_adt_calc_0_run0_4(A, i, t0, tn, b3, w3);
    for (; i < end; i++) fl_fused_res_calc_bres_calc_update_adt_calc_0_run0_1(A, i, t0, tn, b3, w3);
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_list0_4(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
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
    *(fl_float64x4u *)(((m1_0[0] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_0[0] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[0];
    *(fl_float64x4u *)(((m1_1[0] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_1[0] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[0];
    *(fl_float64x4u *)(((m1_0[1] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_0[1] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[1];
    *(fl_float64x4u *)(((m1_1[1] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_1[1] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[1];
    *(fl_float64x4u *)(((m1_0[2] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_0[2] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[2];
    *(fl_float64x4u *)(((m1_1[2] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_1[2] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[2];
    *(fl_float64x4u *)(((m1_0[3] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_0[3] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[3];
    *(fl_float64x4u *)(((m1_1[3] - (uint32_t)t0) < tn ? b3 + (size_t)(m1_1[3] - (uint32_t)t0) * 4 : w3)) -= x3_res_0_0[3];
    }
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_list0_1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
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
        if ((m1_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 0] += (double)p0_res[0][0][l];
        if ((m1_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 1] += (double)p0_res[0][1][l];
        if ((m1_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 2] += (double)p0_res[0][2][l];
        if ((m1_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_0[l] - (uint32_t)t0)) * 4 + 3] += (double)p0_res[0][3][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 0] += (double)p0_res[1][0][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 1] += (double)p0_res[1][1][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 2] += (double)p0_res[1][2][l];
        if ((m1_1[l] - (uint32_t)t0) < tn) b3[((size_t)(m1_1[l] - (uint32_t)t0)) * 4 + 3] += (double)p0_res[1][3][l];
    }
    }
}

static __attribute__((noinline)) void fl_fused_res_calc_bres_calc_update_adt_calc_0_list0(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, int64_t i, const int64_t end, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    for (; i + 4 <= end; i += 4) fl_fused_res_calc_bres_calc_update_adt_calc_0_list0_4(A, i, L, t0, tn, b3, w3);
    for (; i < end; i++) fl_fused_res_calc_bres_calc_update_adt_calc_0_list0_1(A, i, L, t0, tn, b3, w3);
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_run1_4(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    FL_ALIGN int64_t o4[1][4];
    { /* bres_calc */
    for (int l = 0; l < 4; l++) o4[0][l] = (int64_t)A->d4[((i + l))];
    FL_ALIGN double p1_x[2][2][4];
    uint32_t m2_0[4];
    for (int l = 0; l < 4; l++) m2_0[l] = (uint32_t)A->m2[(i + l) * 2 + 0];
    fl_load2_float64_float64_4(p1_x[0] + 0, A->d0 + 0, 2, m2_0);
    uint32_t m2_1[4];
    for (int l = 0; l < 4; l++) m2_1[l] = (uint32_t)A->m2[(i + l) * 2 + 1];
    fl_load2_float64_float64_4(p1_x[1] + 0, A->d0 + 0, 2, m2_1);
    FL_ALIGN double p1_q[1][4][4];
    uint32_t m3_0[4];
    for (int l = 0; l < 4; l++) m3_0[l] = (uint32_t)A->m3[(i + l) * 1 + 0];
    fl_load4_float64_float64_4(p1_q[0] + 0, A->d1 + 0, 4, m3_0);
    FL_ALIGN double p1_adt[1][1][4];
    fl_load1_float64_float64_4(p1_adt[0] + 0, A->d2 + 0, 1, m3_0);
    FL_ALIGN double p1_res[1][4][4];
    const double p1_far[4] = {(double)A->d5[0], (double)A->d5[1], (double)A->d5[2], (double)A->d5[3]};
    const double k_gm1 = (double)A->c1_gm1;
    const double k_eps = (double)A->c1_eps;
#pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: bres_calc */
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
        dx_ = (p1_x[0][0][l] - p1_x[1][0][l]);
        dy_ = (p1_x[0][1][l] - p1_x[1][1][l]);
        ri_ = (1.0 / p1_q[0][0][l]);
        p1_ = (k_gm1 * (p1_q[0][3][l] - ((0.5 * ri_) * ((p1_q[0][1][l] * p1_q[0][1][l]) + (p1_q[0][2][l] * p1_q[0][2][l])))));
        if ((((int64_t)o4[0][l]) == 1)) {
            v_res_0_1 += (p1_ * dy_);
            v_res_0_2 += (-(p1_ * dx_));
        } else {
            vol1_ = (ri_ * ((p1_q[0][1][l] * dy_) - (p1_q[0][2][l] * dx_)));
            ri_ = (1.0 / p1_far[0]);
            p2_ = (k_gm1 * (p1_far[3] - ((0.5 * ri_) * ((p1_far[1] * p1_far[1]) + (p1_far[2] * p1_far[2])))));
            vol2_ = (ri_ * ((p1_far[1] * dy_) - (p1_far[2] * dx_)));
            mu_ = (p1_adt[0][0][l] * k_eps);
            v_res_0_0 += ((0.5 * ((vol1_ * p1_q[0][0][l]) + (vol2_ * p1_far[0]))) + (mu_ * (p1_q[0][0][l] - p1_far[0])));
            v_res_0_1 += ((0.5 * ((((vol1_ * p1_q[0][1][l]) + (p1_ * dy_)) + (vol2_ * p1_far[1])) + (p2_ * dy_))) + (mu_ * (p1_q[0][1][l] - p1_far[1])));
            v_res_0_2 += ((0.5 * ((((vol1_ * p1_q[0][2][l]) - (p1_ * dx_)) + (vol2_ * p1_far[2])) - (p2_ * dx_))) + (mu_ * (p1_q[0][2][l] - p1_far[2])));
            v_res_0_3 += ((0.5 * ((vol1_ * (p1_q[0][3][l] + p1_)) + (vol2_ * (p1_far[3] + p2_)))) + (mu_ * (p1_q[0][3][l] - p1_far[3])));
        }
        p1_res[0][0][l] = v_res_0_0;
        p1_res[0][1][l] = v_res_0_1;
        p1_res[0][2][l] = v_res_0_2;
        p1_res[0][3][l] = v_res_0_3;
    } /* end lanes 4: bres_calc */
    fl_float64x4 x3_res_0_0[4];
    fl_unpack4_float64_float64_4(x3_res_0_0, p1_res[0] + 0);
    *(fl_float64x4u *)((b3 + (size_t)(m3_0[0] - (uint32_t)t0) * 4)) += x3_res_0_0[0];
    *(fl_float64x4u *)((b3 + (size_t)(m3_0[1] - (uint32_t)t0) * 4)) += x3_res_0_0[1];
    *(fl_float64x4u *)((b3 + (size_t)(m3_0[2] - (uint32_t)t0) * 4)) += x3_res_0_0[2];
    *(fl_float64x4u *)((b3 + (size_t)(m3_0[3] - (uint32_t)t0) * 4)) += x3_res_0_0[3];
    }
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_run1_1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    FL_ALIGN int64_t o4[1][1];
    { /* bres_calc */
    for (int l = 0; l < 1; l++) o4[0][l] = (int64_t)A->d4[((i + l))];
    FL_ALIGN double p1_x[2][2][1];
    uint32_t m2_0[1];
    for (int l = 0; l < 1; l++) m2_0[l] = (uint32_t)A->m2[(i + l) * 2 + 0];
    for (int l = 0; l < 1; l++) p1_x[0][0][l] = (double)A->d0[((size_t)m2_0[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p1_x[0][1][l] = (double)A->d0[((size_t)m2_0[l]) * 2 + 1];
    uint32_t m2_1[1];
    for (int l = 0; l < 1; l++) m2_1[l] = (uint32_t)A->m2[(i + l) * 2 + 1];
    for (int l = 0; l < 1; l++) p1_x[1][0][l] = (double)A->d0[((size_t)m2_1[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p1_x[1][1][l] = (double)A->d0[((size_t)m2_1[l]) * 2 + 1];
    FL_ALIGN double p1_q[1][4][1];
    uint32_t m3_0[1];
    for (int l = 0; l < 1; l++) m3_0[l] = (uint32_t)A->m3[(i + l) * 1 + 0];
    for (int l = 0; l < 1; l++) p1_q[0][0][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 0];
    for (int l = 0; l < 1; l++) p1_q[0][1][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 1];
    for (int l = 0; l < 1; l++) p1_q[0][2][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 2];
    for (int l = 0; l < 1; l++) p1_q[0][3][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 3];
    FL_ALIGN double p1_adt[1][1][1];
    for (int l = 0; l < 1; l++) p1_adt[0][0][l] = (double)A->d2[((size_t)m3_0[l])];
    FL_ALIGN double p1_res[1][4][1];
    const double p1_far[4] = {(double)A->d5[0], (double)A->d5[1], (double)A->d5[2], (double)A->d5[3]};
    const double k_gm1 = (double)A->c1_gm1;
    const double k_eps = (double)A->c1_eps;
    for (int l = 0; l < 1; l++) { /* lanes 1: bres_calc */
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
        dx_ = (p1_x[0][0][0] - p1_x[1][0][0]);
        dy_ = (p1_x[0][1][0] - p1_x[1][1][0]);
        ri_ = (1.0 / p1_q[0][0][0]);
        p1_ = (k_gm1 * (p1_q[0][3][0] - ((0.5 * ri_) * ((p1_q[0][1][0] * p1_q[0][1][0]) + (p1_q[0][2][0] * p1_q[0][2][0])))));
        if ((((int64_t)o4[0][0]) == 1)) {
            v_res_0_1 += (p1_ * dy_);
            v_res_0_2 += (-(p1_ * dx_));
        } else {
            vol1_ = (ri_ * ((p1_q[0][1][0] * dy_) - (p1_q[0][2][0] * dx_)));
            ri_ = (1.0 / p1_far[0]);
            p2_ = (k_gm1 * (p1_far[3] - ((0.5 * ri_) * ((p1_far[1] * p1_far[1]) + (p1_far[2] * p1_far[2])))));
            vol2_ = (ri_ * ((p1_far[1] * dy_) - (p1_far[2] * dx_)));
            mu_ = (p1_adt[0][0][0] * k_eps);
            v_res_0_0 += ((0.5 * ((vol1_ * p1_q[0][0][0]) + (vol2_ * p1_far[0]))) + (mu_ * (p1_q[0][0][0] - p1_far[0])));
            v_res_0_1 += ((0.5 * ((((vol1_ * p1_q[0][1][0]) + (p1_ * dy_)) + (vol2_ * p1_far[1])) + (p2_ * dy_))) + (mu_ * (p1_q[0][1][0] - p1_far[1])));
            v_res_0_2 += ((0.5 * ((((vol1_ * p1_q[0][2][0]) - (p1_ * dx_)) + (vol2_ * p1_far[2])) - (p2_ * dx_))) + (mu_ * (p1_q[0][2][0] - p1_far[2])));
            v_res_0_3 += ((0.5 * ((vol1_ * (p1_q[0][3][0] + p1_)) + (vol2_ * (p1_far[3] + p2_)))) + (mu_ * (p1_q[0][3][0] - p1_far[3])));
        }
        p1_res[0][0][0] = v_res_0_0;
        p1_res[0][1][0] = v_res_0_1;
        p1_res[0][2][0] = v_res_0_2;
        p1_res[0][3][0] = v_res_0_3;
    } /* end lanes 1: bres_calc */
    for (int l = 0; l < 1; l++) {
        b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 0] += (double)p1_res[0][0][l];
        b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 1] += (double)p1_res[0][1][l];
        b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 2] += (double)p1_res[0][2][l];
        b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 3] += (double)p1_res[0][3][l];
    }
    }
}

static __attribute__((noinline)) void fl_fused_res_calc_bres_calc_update_adt_calc_0_run1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, int64_t i, const int64_t end, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    for (; i + 4 <= end; i += 4) fl_fused_res_calc_bres_calc_update_adt_calc_0_run1_4(A, i, t0, tn, b3, w3);
    for (; i < end; i++) fl_fused_res_calc_bres_calc_update_adt_calc_0_run1_1(A, i, t0, tn, b3, w3);
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_list1_4(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    uint32_t e[4];
    for (int l = 0; l < 4; l++) e[l] = (uint32_t)L[i + l];
    FL_ALIGN int64_t o4[1][4];
    { /* bres_calc */
    for (int l = 0; l < 4; l++) o4[0][l] = (int64_t)A->d4[((size_t)e[l])];
    FL_ALIGN double p1_x[2][2][4];
    uint32_t m2_0[4];
    for (int l = 0; l < 4; l++) m2_0[l] = (uint32_t)A->m2[(size_t)e[l] * 2 + 0];
    fl_load2_float64_float64_4(p1_x[0] + 0, A->d0 + 0, 2, m2_0);
    uint32_t m2_1[4];
    for (int l = 0; l < 4; l++) m2_1[l] = (uint32_t)A->m2[(size_t)e[l] * 2 + 1];
    fl_load2_float64_float64_4(p1_x[1] + 0, A->d0 + 0, 2, m2_1);
    FL_ALIGN double p1_q[1][4][4];
    uint32_t m3_0[4];
    for (int l = 0; l < 4; l++) m3_0[l] = (uint32_t)A->m3[(size_t)e[l] * 1 + 0];
    fl_load4_float64_float64_4(p1_q[0] + 0, A->d1 + 0, 4, m3_0);
    FL_ALIGN double p1_adt[1][1][4];
    fl_load1_float64_float64_4(p1_adt[0] + 0, A->d2 + 0, 1, m3_0);
    FL_ALIGN double p1_res[1][4][4];
    const double p1_far[4] = {(double)A->d5[0], (double)A->d5[1], (double)A->d5[2], (double)A->d5[3]};
    const double k_gm1 = (double)A->c1_gm1;
    const double k_eps = (double)A->c1_eps;
#pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: bres_calc */
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
        dx_ = (p1_x[0][0][l] - p1_x[1][0][l]);
        dy_ = (p1_x[0][1][l] - p1_x[1][1][l]);
        ri_ = (1.0 / p1_q[0][0][l]);
        p1_ = (k_gm1 * (p1_q[0][3][l] - ((0.5 * ri_) * ((p1_q[0][1][l] * p1_q[0][1][l]) + (p1_q[0][2][l] * p1_q[0][2][l])))));
        if ((((int64_t)o4[0][l]) == 1)) {
            v_res_0_1 += (p1_ * dy_);
            v_res_0_2 += (-(p1_ * dx_));
        } else {
            vol1_ = (ri_ * ((p1_q[0][1][l] * dy_) - (p1_q[0][2][l] * dx_)));
            ri_ = (1.0 / p1_far[0]);
            p2_ = (k_gm1 * (p1_far[3] - ((0.5 * ri_) * ((p1_far[1] * p1_far[1]) + (p1_far[2] * p1_far[2])))));
            vol2_ = (ri_ * ((p1_far[1] * dy_) - (p1_far[2] * dx_)));
            mu_ = (p1_adt[0][0][l] * k_eps);
            v_res_0_0 += ((0.5 * ((vol1_ * p1_q[0][0][l]) + (vol2_ * p1_far[0]))) + (mu_ * (p1_q[0][0][l] - p1_far[0])));
            v_res_0_1 += ((0.5 * ((((vol1_ * p1_q[0][1][l]) + (p1_ * dy_)) + (vol2_ * p1_far[1])) + (p2_ * dy_))) + (mu_ * (p1_q[0][1][l] - p1_far[1])));
            v_res_0_2 += ((0.5 * ((((vol1_ * p1_q[0][2][l]) - (p1_ * dx_)) + (vol2_ * p1_far[2])) - (p2_ * dx_))) + (mu_ * (p1_q[0][2][l] - p1_far[2])));
            v_res_0_3 += ((0.5 * ((vol1_ * (p1_q[0][3][l] + p1_)) + (vol2_ * (p1_far[3] + p2_)))) + (mu_ * (p1_q[0][3][l] - p1_far[3])));
        }
        p1_res[0][0][l] = v_res_0_0;
        p1_res[0][1][l] = v_res_0_1;
        p1_res[0][2][l] = v_res_0_2;
        p1_res[0][3][l] = v_res_0_3;
    } /* end lanes 4: bres_calc */
    fl_float64x4 x3_res_0_0[4];
    fl_unpack4_float64_float64_4(x3_res_0_0, p1_res[0] + 0);
    *(fl_float64x4u *)(((m3_0[0] - (uint32_t)t0) < tn ? b3 + (size_t)(m3_0[0] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[0];
    *(fl_float64x4u *)(((m3_0[1] - (uint32_t)t0) < tn ? b3 + (size_t)(m3_0[1] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[1];
    *(fl_float64x4u *)(((m3_0[2] - (uint32_t)t0) < tn ? b3 + (size_t)(m3_0[2] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[2];
    *(fl_float64x4u *)(((m3_0[3] - (uint32_t)t0) < tn ? b3 + (size_t)(m3_0[3] - (uint32_t)t0) * 4 : w3)) += x3_res_0_0[3];
    }
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_list1_1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    uint32_t e[1];
    for (int l = 0; l < 1; l++) e[l] = (uint32_t)L[i + l];
    FL_ALIGN int64_t o4[1][1];
    { /* bres_calc */
    for (int l = 0; l < 1; l++) o4[0][l] = (int64_t)A->d4[((size_t)e[l])];
    FL_ALIGN double p1_x[2][2][1];
    uint32_t m2_0[1];
    for (int l = 0; l < 1; l++) m2_0[l] = (uint32_t)A->m2[(size_t)e[l] * 2 + 0];
    for (int l = 0; l < 1; l++) p1_x[0][0][l] = (double)A->d0[((size_t)m2_0[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p1_x[0][1][l] = (double)A->d0[((size_t)m2_0[l]) * 2 + 1];
    uint32_t m2_1[1];
    for (int l = 0; l < 1; l++) m2_1[l] = (uint32_t)A->m2[(size_t)e[l] * 2 + 1];
    for (int l = 0; l < 1; l++) p1_x[1][0][l] = (double)A->d0[((size_t)m2_1[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p1_x[1][1][l] = (double)A->d0[((size_t)m2_1[l]) * 2 + 1];
    FL_ALIGN double p1_q[1][4][1];
    uint32_t m3_0[1];
    for (int l = 0; l < 1; l++) m3_0[l] = (uint32_t)A->m3[(size_t)e[l] * 1 + 0];
    for (int l = 0; l < 1; l++) p1_q[0][0][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 0];
    for (int l = 0; l < 1; l++) p1_q[0][1][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 1];
    for (int l = 0; l < 1; l++) p1_q[0][2][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 2];
    for (int l = 0; l < 1; l++) p1_q[0][3][l] = (double)A->d1[((size_t)m3_0[l]) * 4 + 3];
    FL_ALIGN double p1_adt[1][1][1];
    for (int l = 0; l < 1; l++) p1_adt[0][0][l] = (double)A->d2[((size_t)m3_0[l])];
    FL_ALIGN double p1_res[1][4][1];
    const double p1_far[4] = {(double)A->d5[0], (double)A->d5[1], (double)A->d5[2], (double)A->d5[3]};
    const double k_gm1 = (double)A->c1_gm1;
    const double k_eps = (double)A->c1_eps;
    for (int l = 0; l < 1; l++) { /* lanes 1: bres_calc */
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
        dx_ = (p1_x[0][0][0] - p1_x[1][0][0]);
        dy_ = (p1_x[0][1][0] - p1_x[1][1][0]);
        ri_ = (1.0 / p1_q[0][0][0]);
        p1_ = (k_gm1 * (p1_q[0][3][0] - ((0.5 * ri_) * ((p1_q[0][1][0] * p1_q[0][1][0]) + (p1_q[0][2][0] * p1_q[0][2][0])))));
        if ((((int64_t)o4[0][0]) == 1)) {
            v_res_0_1 += (p1_ * dy_);
            v_res_0_2 += (-(p1_ * dx_));
        } else {
            vol1_ = (ri_ * ((p1_q[0][1][0] * dy_) - (p1_q[0][2][0] * dx_)));
            ri_ = (1.0 / p1_far[0]);
            p2_ = (k_gm1 * (p1_far[3] - ((0.5 * ri_) * ((p1_far[1] * p1_far[1]) + (p1_far[2] * p1_far[2])))));
            vol2_ = (ri_ * ((p1_far[1] * dy_) - (p1_far[2] * dx_)));
            mu_ = (p1_adt[0][0][0] * k_eps);
            v_res_0_0 += ((0.5 * ((vol1_ * p1_q[0][0][0]) + (vol2_ * p1_far[0]))) + (mu_ * (p1_q[0][0][0] - p1_far[0])));
            v_res_0_1 += ((0.5 * ((((vol1_ * p1_q[0][1][0]) + (p1_ * dy_)) + (vol2_ * p1_far[1])) + (p2_ * dy_))) + (mu_ * (p1_q[0][1][0] - p1_far[1])));
            v_res_0_2 += ((0.5 * ((((vol1_ * p1_q[0][2][0]) - (p1_ * dx_)) + (vol2_ * p1_far[2])) - (p2_ * dx_))) + (mu_ * (p1_q[0][2][0] - p1_far[2])));
            v_res_0_3 += ((0.5 * ((vol1_ * (p1_q[0][3][0] + p1_)) + (vol2_ * (p1_far[3] + p2_)))) + (mu_ * (p1_q[0][3][0] - p1_far[3])));
        }
        p1_res[0][0][0] = v_res_0_0;
        p1_res[0][1][0] = v_res_0_1;
        p1_res[0][2][0] = v_res_0_2;
        p1_res[0][3][0] = v_res_0_3;
    } /* end lanes 1: bres_calc */
    for (int l = 0; l < 1; l++) {
        if ((m3_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 0] += (double)p1_res[0][0][l];
        if ((m3_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 1] += (double)p1_res[0][1][l];
        if ((m3_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 2] += (double)p1_res[0][2][l];
        if ((m3_0[l] - (uint32_t)t0) < tn) b3[((size_t)(m3_0[l] - (uint32_t)t0)) * 4 + 3] += (double)p1_res[0][3][l];
    }
    }
}

static __attribute__((noinline)) void fl_fused_res_calc_bres_calc_update_adt_calc_0_list1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, int64_t i, const int64_t end, const int32_t *restrict L, const int64_t t0, const uint32_t tn, double *restrict b3, double *restrict w3) {
    for (; i + 4 <= end; i += 4) fl_fused_res_calc_bres_calc_update_adt_calc_0_list1_4(A, i, L, t0, tn, b3, w3);
    for (; i < end; i++) fl_fused_res_calc_bres_calc_update_adt_calc_0_list1_1(A, i, L, t0, tn, b3, w3);
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_cells_8(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict b3, double (*restrict acc2_rms)[16]) {
    FL_ALIGN double o6[4][8];
    FL_ALIGN double o1[4][8];
    FL_ALIGN double o3[4][8];
    FL_ALIGN double o2[1][8];
    { /* update */
    fl_loadseq4_float64_float64_8(o6 + 0, A->d6 + 0, 4, i);
    fl_loadseq4_float64_float64_8(o3 + 0, b3 + 0, 4, i - t0);
    fl_loadseq1_float64_float64_8(o2 + 0, A->d2 + 0, 1, i);
    FL_ALIGN double p2_rms[1][1][8];
#pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: update */
        double adti_;
        double change_;
        double v_q_0_0;
        double v_q_0_1;
        double v_q_0_2;
        double v_q_0_3;
        double v_res_0_0 = o3[0][l];
        double v_res_0_1 = o3[1][l];
        double v_res_0_2 = o3[2][l];
        double v_res_0_3 = o3[3][l];
        double v_rms_0_0;
        adti_ = (1.0 / o2[0][l]);
        change_ = (adti_ * v_res_0_0);
        v_q_0_0 = (o6[0][l] - change_);
        v_res_0_0 = 0.0;
        v_rms_0_0 = (change_ * change_);
        change_ = (adti_ * v_res_0_1);
        v_q_0_1 = (o6[1][l] - change_);
        v_res_0_1 = 0.0;
        v_rms_0_0 += (change_ * change_);
        change_ = (adti_ * v_res_0_2);
        v_q_0_2 = (o6[2][l] - change_);
        v_res_0_2 = 0.0;
        v_rms_0_0 += (change_ * change_);
        change_ = (adti_ * v_res_0_3);
        v_q_0_3 = (o6[3][l] - change_);
        v_res_0_3 = 0.0;
        v_rms_0_0 += (change_ * change_);
        o1[0][l] = v_q_0_0;
        o1[1][l] = v_q_0_1;
        o1[2][l] = v_q_0_2;
        o1[3][l] = v_q_0_3;
        o3[0][l] = v_res_0_0;
        o3[1][l] = v_res_0_1;
        o3[2][l] = v_res_0_2;
        o3[3][l] = v_res_0_3;
        p2_rms[0][0][l] = v_rms_0_0;
    } /* end lanes 8: update */
    for (int l = 0; l < 8; l++) acc2_rms[0][(i & 8) + l] = acc2_rms[0][(i & 8) + l] + p2_rms[0][0][l];
    }
    { /* adt_calc */
    FL_ALIGN double p3_x[4][2][8];
    uint32_t m4_0[8];
    for (int l = 0; l < 8; l++) m4_0[l] = (uint32_t)A->m4[(i + l) * 4 + 0];
    fl_load2_float64_float64_8(p3_x[0] + 0, A->d0 + 0, 2, m4_0);
    uint32_t m4_1[8];
    for (int l = 0; l < 8; l++) m4_1[l] = (uint32_t)A->m4[(i + l) * 4 + 1];
    fl_load2_float64_float64_8(p3_x[1] + 0, A->d0 + 0, 2, m4_1);
    uint32_t m4_2[8];
    for (int l = 0; l < 8; l++) m4_2[l] = (uint32_t)A->m4[(i + l) * 4 + 2];
    fl_load2_float64_float64_8(p3_x[2] + 0, A->d0 + 0, 2, m4_2);
    uint32_t m4_3[8];
    for (int l = 0; l < 8; l++) m4_3[l] = (uint32_t)A->m4[(i + l) * 4 + 3];
    fl_load2_float64_float64_8(p3_x[3] + 0, A->d0 + 0, 2, m4_3);
    const double k_gamma = (double)A->c3_gamma;
    const double k_cfl = (double)A->c3_cfl;
#pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: adt_calc */
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
        ri_ = (1.0 / o1[0][l]);
        u_ = (ri_ * o1[1][l]);
        v_ = (ri_ * o1[2][l]);
        c_ = sqrt(((k_gamma * (k_gamma - 1.0)) * ((ri_ * o1[3][l]) - (0.5 * ((u_ * u_) + (v_ * v_))))));
        side_u_ = u_;
        side_v_ = v_;
        side_c_ = c_;
        side_dx_ = (p3_x[1][0][l] - p3_x[0][0][l]);
        side_dy_ = (p3_x[1][1][l] - p3_x[0][1][l]);
        total_ = (fl_abs_double(((side_u_ * side_dy_) - (side_v_ * side_dx_))) + (side_c_ * sqrt(((side_dx_ * side_dx_) + (side_dy_ * side_dy_)))));
        side_u_2_ = u_;
        side_v_2_ = v_;
        side_c_2_ = c_;
        side_dx_2_ = (p3_x[2][0][l] - p3_x[1][0][l]);
        side_dy_2_ = (p3_x[2][1][l] - p3_x[1][1][l]);
        total_ = (total_ + (fl_abs_double(((side_u_2_ * side_dy_2_) - (side_v_2_ * side_dx_2_))) + (side_c_2_ * sqrt(((side_dx_2_ * side_dx_2_) + (side_dy_2_ * side_dy_2_))))));
        side_u_3_ = u_;
        side_v_3_ = v_;
        side_c_3_ = c_;
        side_dx_3_ = (p3_x[3][0][l] - p3_x[2][0][l]);
        side_dy_3_ = (p3_x[3][1][l] - p3_x[2][1][l]);
        total_ = (total_ + (fl_abs_double(((side_u_3_ * side_dy_3_) - (side_v_3_ * side_dx_3_))) + (side_c_3_ * sqrt(((side_dx_3_ * side_dx_3_) + (side_dy_3_ * side_dy_3_))))));
        side_u_4_ = u_;
        side_v_4_ = v_;
        side_c_4_ = c_;
        side_dx_4_ = (p3_x[0][0][l] - p3_x[3][0][l]);
        side_dy_4_ = (p3_x[0][1][l] - p3_x[3][1][l]);
        total_ = (total_ + (fl_abs_double(((side_u_4_ * side_dy_4_) - (side_v_4_ * side_dx_4_))) + (side_c_4_ * sqrt(((side_dx_4_ * side_dx_4_) + (side_dy_4_ * side_dy_4_))))));
        v_adt_0_0 = (total_ / k_cfl);
        o2[0][l] = v_adt_0_0;
    } /* end lanes 8: adt_calc */
    }
    fl_storeseq4_float64_float64_8(A->d1o + 0, 4, i, o1 + 0);
    fl_storeseq1_float64_float64_8(A->d2o + 0, 1, i, o2 + 0);
}

AI void fl_fused_res_calc_bres_calc_update_adt_calc_0_cells_1(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, const int64_t i, const int64_t t0, const uint32_t tn, double *restrict b3, double (*restrict acc2_rms)[16]) {
    FL_ALIGN double o6[4][1];
    FL_ALIGN double o1[4][1];
    FL_ALIGN double o3[4][1];
    FL_ALIGN double o2[1][1];
    { /* update */
    for (int l = 0; l < 1; l++) o6[0][l] = (double)A->d6[((i + l)) * 4 + 0];
    for (int l = 0; l < 1; l++) o6[1][l] = (double)A->d6[((i + l)) * 4 + 1];
    for (int l = 0; l < 1; l++) o6[2][l] = (double)A->d6[((i + l)) * 4 + 2];
    for (int l = 0; l < 1; l++) o6[3][l] = (double)A->d6[((i + l)) * 4 + 3];
    for (int l = 0; l < 1; l++) o3[0][l] = (double)b3[((i - t0 + l)) * 4 + 0];
    for (int l = 0; l < 1; l++) o3[1][l] = (double)b3[((i - t0 + l)) * 4 + 1];
    for (int l = 0; l < 1; l++) o3[2][l] = (double)b3[((i - t0 + l)) * 4 + 2];
    for (int l = 0; l < 1; l++) o3[3][l] = (double)b3[((i - t0 + l)) * 4 + 3];
    for (int l = 0; l < 1; l++) o2[0][l] = (double)A->d2[((i + l))];
    FL_ALIGN double p2_rms[1][1][1];
    for (int l = 0; l < 1; l++) { /* lanes 1: update */
        double adti_;
        double change_;
        double v_q_0_0;
        double v_q_0_1;
        double v_q_0_2;
        double v_q_0_3;
        double v_res_0_0 = o3[0][0];
        double v_res_0_1 = o3[1][0];
        double v_res_0_2 = o3[2][0];
        double v_res_0_3 = o3[3][0];
        double v_rms_0_0;
        adti_ = (1.0 / o2[0][0]);
        change_ = (adti_ * v_res_0_0);
        v_q_0_0 = (o6[0][0] - change_);
        v_res_0_0 = 0.0;
        v_rms_0_0 = (change_ * change_);
        change_ = (adti_ * v_res_0_1);
        v_q_0_1 = (o6[1][0] - change_);
        v_res_0_1 = 0.0;
        v_rms_0_0 += (change_ * change_);
        change_ = (adti_ * v_res_0_2);
        v_q_0_2 = (o6[2][0] - change_);
        v_res_0_2 = 0.0;
        v_rms_0_0 += (change_ * change_);
        change_ = (adti_ * v_res_0_3);
        v_q_0_3 = (o6[3][0] - change_);
        v_res_0_3 = 0.0;
        v_rms_0_0 += (change_ * change_);
        o1[0][0] = v_q_0_0;
        o1[1][0] = v_q_0_1;
        o1[2][0] = v_q_0_2;
        o1[3][0] = v_q_0_3;
        o3[0][0] = v_res_0_0;
        o3[1][0] = v_res_0_1;
        o3[2][0] = v_res_0_2;
        o3[3][0] = v_res_0_3;
        p2_rms[0][0][0] = v_rms_0_0;
    } /* end lanes 1: update */
    for (int l = 0; l < 1; l++) acc2_rms[0][(i & 15) + l] = acc2_rms[0][(i & 15) + l] + p2_rms[0][0][l];
    }
    { /* adt_calc */
    FL_ALIGN double p3_x[4][2][1];
    uint32_t m4_0[1];
    for (int l = 0; l < 1; l++) m4_0[l] = (uint32_t)A->m4[(i + l) * 4 + 0];
    for (int l = 0; l < 1; l++) p3_x[0][0][l] = (double)A->d0[((size_t)m4_0[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p3_x[0][1][l] = (double)A->d0[((size_t)m4_0[l]) * 2 + 1];
    uint32_t m4_1[1];
    for (int l = 0; l < 1; l++) m4_1[l] = (uint32_t)A->m4[(i + l) * 4 + 1];
    for (int l = 0; l < 1; l++) p3_x[1][0][l] = (double)A->d0[((size_t)m4_1[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p3_x[1][1][l] = (double)A->d0[((size_t)m4_1[l]) * 2 + 1];
    uint32_t m4_2[1];
    for (int l = 0; l < 1; l++) m4_2[l] = (uint32_t)A->m4[(i + l) * 4 + 2];
    for (int l = 0; l < 1; l++) p3_x[2][0][l] = (double)A->d0[((size_t)m4_2[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p3_x[2][1][l] = (double)A->d0[((size_t)m4_2[l]) * 2 + 1];
    uint32_t m4_3[1];
    for (int l = 0; l < 1; l++) m4_3[l] = (uint32_t)A->m4[(i + l) * 4 + 3];
    for (int l = 0; l < 1; l++) p3_x[3][0][l] = (double)A->d0[((size_t)m4_3[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p3_x[3][1][l] = (double)A->d0[((size_t)m4_3[l]) * 2 + 1];
    const double k_gamma = (double)A->c3_gamma;
    const double k_cfl = (double)A->c3_cfl;
    for (int l = 0; l < 1; l++) { /* lanes 1: adt_calc */
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
        ri_ = (1.0 / o1[0][0]);
        u_ = (ri_ * o1[1][0]);
        v_ = (ri_ * o1[2][0]);
        c_ = sqrt(((k_gamma * (k_gamma - 1.0)) * ((ri_ * o1[3][0]) - (0.5 * ((u_ * u_) + (v_ * v_))))));
        side_u_ = u_;
        side_v_ = v_;
        side_c_ = c_;
        side_dx_ = (p3_x[1][0][0] - p3_x[0][0][0]);
        side_dy_ = (p3_x[1][1][0] - p3_x[0][1][0]);
        total_ = (fl_abs_double(((side_u_ * side_dy_) - (side_v_ * side_dx_))) + (side_c_ * sqrt(((side_dx_ * side_dx_) + (side_dy_ * side_dy_)))));
        side_u_2_ = u_;
        side_v_2_ = v_;
        side_c_2_ = c_;
        side_dx_2_ = (p3_x[2][0][0] - p3_x[1][0][0]);
        side_dy_2_ = (p3_x[2][1][0] - p3_x[1][1][0]);
        total_ = (total_ + (fl_abs_double(((side_u_2_ * side_dy_2_) - (side_v_2_ * side_dx_2_))) + (side_c_2_ * sqrt(((side_dx_2_ * side_dx_2_) + (side_dy_2_ * side_dy_2_))))));
        side_u_3_ = u_;
        side_v_3_ = v_;
        side_c_3_ = c_;
        side_dx_3_ = (p3_x[3][0][0] - p3_x[2][0][0]);
        side_dy_3_ = (p3_x[3][1][0] - p3_x[2][1][0]);
        total_ = (total_ + (fl_abs_double(((side_u_3_ * side_dy_3_) - (side_v_3_ * side_dx_3_))) + (side_c_3_ * sqrt(((side_dx_3_ * side_dx_3_) + (side_dy_3_ * side_dy_3_))))));
        side_u_4_ = u_;
        side_v_4_ = v_;
        side_c_4_ = c_;
        side_dx_4_ = (p3_x[0][0][0] - p3_x[3][0][0]);
        side_dy_4_ = (p3_x[0][1][0] - p3_x[3][1][0]);
        total_ = (total_ + (fl_abs_double(((side_u_4_ * side_dy_4_) - (side_v_4_ * side_dx_4_))) + (side_c_4_ * sqrt(((side_dx_4_ * side_dx_4_) + (side_dy_4_ * side_dy_4_))))));
        v_adt_0_0 = (total_ / k_cfl);
        o2[0][0] = v_adt_0_0;
    } /* end lanes 1: adt_calc */
    }
    for (int l = 0; l < 1; l++) A->d1o[((size_t)(i + l)) * 4 + 0] = (double)o1[0][l];
    for (int l = 0; l < 1; l++) A->d1o[((size_t)(i + l)) * 4 + 1] = (double)o1[1][l];
    for (int l = 0; l < 1; l++) A->d1o[((size_t)(i + l)) * 4 + 2] = (double)o1[2][l];
    for (int l = 0; l < 1; l++) A->d1o[((size_t)(i + l)) * 4 + 3] = (double)o1[3][l];
    for (int l = 0; l < 1; l++) A->d2o[((size_t)(i + l))] = (double)o2[0][l];
}

static __attribute__((noinline)) void fl_fused_res_calc_bres_calc_update_adt_calc_0_cells(const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *restrict A, int64_t i, const int64_t end, const int64_t t0, const uint32_t tn, double *restrict b3, double (*restrict acc2_rms)[16]) {
    for (; i + 8 <= end; i += 8) fl_fused_res_calc_bres_calc_update_adt_calc_0_cells_8(A, i, t0, tn, b3, acc2_rms);
    for (; i < end; i++) fl_fused_res_calc_bres_calc_update_adt_calc_0_cells_1(A, i, t0, tn, b3, acc2_rms);
}

void fl_fused_res_calc_bres_calc_update_adt_calc_0(const int64_t *S) {
    const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *const A = (const fl_fused_res_calc_bres_calc_update_adt_calc_0_args *)S;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t tile = 0; tile < A->tiles; tile++) {
        const int64_t t0 = tile * 1024;
        const int64_t t1 = t0 + 1024 < A->targets ? t0 + 1024 : A->targets;
        const uint32_t tn = (uint32_t)(t1 - t0);
        FL_ALIGN double w3[8] = {0};
        FL_ALIGN double b3[4096];
        memset(b3, 0, (size_t)tn * sizeof(double) * 4);
        for (int64_t s = A->seg_ptr0[tile]; s < A->seg_ptr0[tile + 1]; s++) {
            const int64_t pos = A->seg_pos0[s], length = A->seg_len0[s];
            const int32_t *const L = A->elem0;
            if (length > 0)
                fl_fused_res_calc_bres_calc_update_adt_calc_0_run0(A, L[pos], L[pos] + length, t0, tn, b3, w3);
            else
                fl_fused_res_calc_bres_calc_update_adt_calc_0_list0(A, pos, pos - length, L, t0, tn, b3, w3);
        }
        for (int64_t s = A->seg_ptr1[tile]; s < A->seg_ptr1[tile + 1]; s++) {
            const int64_t pos = A->seg_pos1[s], length = A->seg_len1[s];
            const int32_t *const L = A->elem1;
            if (length > 0)
                fl_fused_res_calc_bres_calc_update_adt_calc_0_run1(A, L[pos], L[pos] + length, t0, tn, b3, w3);
            else
                fl_fused_res_calc_bres_calc_update_adt_calc_0_list1(A, pos, pos - length, L, t0, tn, b3, w3);
        }
        for (int64_t b = t0; b < t1; b += 1024) {
            FL_ALIGN double acc2_rms[1][16];
            for (int c = 0; c < 1; c++) for (int l = 0; l < 16; l++) acc2_rms[c][l] = 0;
            fl_fused_res_calc_bres_calc_update_adt_calc_0_cells(A, b, b + 1024 < t1 ? b + 1024 : t1, t0, tn, b3, acc2_rms);
            for (int c = 0; c < 1; c++) {
                for (int h = 8; h > 0; h /= 2) for (int l = 0; l < h; l++) acc2_rms[c][l] = acc2_rms[c][l] + acc2_rms[c][l + h];
                A->part2_rms[(b / 1024) * 1 + c] = acc2_rms[c][0];
            }
        }
    }
    for (int c = 0; c < 1; c++) {
        double total = 0;
        for (int64_t p = 0; p < (A->targets + 1023) / 1024; p++) total = total + A->part2_rms[p * 1 + c];
        A->d7[c] = (double)(A->d7[c] + total);
    }
}

/* adt_calc: direct */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int32_t * m0;
    double * d1;
    double * d2;
    double * d2o;
    double c0_gamma;
    double c0_cfl;
} fl_ahead_1_args;

AI void fl_ahead_1_run_8(const fl_ahead_1_args *restrict A, const int64_t i) {
    FL_ALIGN double o1[4][8];
    FL_ALIGN double o2[1][8];
    { /* adt_calc */
    fl_loadseq4_float64_float64_8(o1 + 0, A->d1 + 0, 4, i);
    FL_ALIGN double p0_x[4][2][8];
    uint32_t m0_0[8];
    for (int l = 0; l < 8; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 4 + 0];
    fl_load2_float64_float64_8(p0_x[0] + 0, A->d0 + 0, 2, m0_0);
    uint32_t m0_1[8];
    for (int l = 0; l < 8; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 4 + 1];
    fl_load2_float64_float64_8(p0_x[1] + 0, A->d0 + 0, 2, m0_1);
    uint32_t m0_2[8];
    for (int l = 0; l < 8; l++) m0_2[l] = (uint32_t)A->m0[(i + l) * 4 + 2];
    fl_load2_float64_float64_8(p0_x[2] + 0, A->d0 + 0, 2, m0_2);
    uint32_t m0_3[8];
    for (int l = 0; l < 8; l++) m0_3[l] = (uint32_t)A->m0[(i + l) * 4 + 3];
    fl_load2_float64_float64_8(p0_x[3] + 0, A->d0 + 0, 2, m0_3);
    const double k_gamma = (double)A->c0_gamma;
    const double k_cfl = (double)A->c0_cfl;
#pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: adt_calc */
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
        ri_ = (1.0 / o1[0][l]);
        u_ = (ri_ * o1[1][l]);
        v_ = (ri_ * o1[2][l]);
        c_ = sqrt(((k_gamma * (k_gamma - 1.0)) * ((ri_ * o1[3][l]) - (0.5 * ((u_ * u_) + (v_ * v_))))));
        side_u_ = u_;
        side_v_ = v_;
        side_c_ = c_;
        side_dx_ = (p0_x[1][0][l] - p0_x[0][0][l]);
        side_dy_ = (p0_x[1][1][l] - p0_x[0][1][l]);
        total_ = (fl_abs_double(((side_u_ * side_dy_) - (side_v_ * side_dx_))) + (side_c_ * sqrt(((side_dx_ * side_dx_) + (side_dy_ * side_dy_)))));
        side_u_2_ = u_;
        side_v_2_ = v_;
        side_c_2_ = c_;
        side_dx_2_ = (p0_x[2][0][l] - p0_x[1][0][l]);
        side_dy_2_ = (p0_x[2][1][l] - p0_x[1][1][l]);
        total_ = (total_ + (fl_abs_double(((side_u_2_ * side_dy_2_) - (side_v_2_ * side_dx_2_))) + (side_c_2_ * sqrt(((side_dx_2_ * side_dx_2_) + (side_dy_2_ * side_dy_2_))))));
        side_u_3_ = u_;
        side_v_3_ = v_;
        side_c_3_ = c_;
        side_dx_3_ = (p0_x[3][0][l] - p0_x[2][0][l]);
        side_dy_3_ = (p0_x[3][1][l] - p0_x[2][1][l]);
        total_ = (total_ + (fl_abs_double(((side_u_3_ * side_dy_3_) - (side_v_3_ * side_dx_3_))) + (side_c_3_ * sqrt(((side_dx_3_ * side_dx_3_) + (side_dy_3_ * side_dy_3_))))));
        side_u_4_ = u_;
        side_v_4_ = v_;
        side_c_4_ = c_;
        side_dx_4_ = (p0_x[0][0][l] - p0_x[3][0][l]);
        side_dy_4_ = (p0_x[0][1][l] - p0_x[3][1][l]);
        total_ = (total_ + (fl_abs_double(((side_u_4_ * side_dy_4_) - (side_v_4_ * side_dx_4_))) + (side_c_4_ * sqrt(((side_dx_4_ * side_dx_4_) + (side_dy_4_ * side_dy_4_))))));
        v_adt_0_0 = (total_ / k_cfl);
        o2[0][l] = v_adt_0_0;
    } /* end lanes 8: adt_calc */
    }
    fl_storeseq1_float64_float64_8(A->d2o + 0, 1, i, o2 + 0);
}

AI void fl_ahead_1_run_1(const fl_ahead_1_args *restrict A, const int64_t i) {
    FL_ALIGN double o1[4][1];
    FL_ALIGN double o2[1][1];
    { /* adt_calc */
    for (int l = 0; l < 1; l++) o1[0][l] = (double)A->d1[((i + l)) * 4 + 0];
    for (int l = 0; l < 1; l++) o1[1][l] = (double)A->d1[((i + l)) * 4 + 1];
    for (int l = 0; l < 1; l++) o1[2][l] = (double)A->d1[((i + l)) * 4 + 2];
    for (int l = 0; l < 1; l++) o1[3][l] = (double)A->d1[((i + l)) * 4 + 3];
    FL_ALIGN double p0_x[4][2][1];
    uint32_t m0_0[1];
    for (int l = 0; l < 1; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 4 + 0];
    for (int l = 0; l < 1; l++) p0_x[0][0][l] = (double)A->d0[((size_t)m0_0[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[0][1][l] = (double)A->d0[((size_t)m0_0[l]) * 2 + 1];
    uint32_t m0_1[1];
    for (int l = 0; l < 1; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 4 + 1];
    for (int l = 0; l < 1; l++) p0_x[1][0][l] = (double)A->d0[((size_t)m0_1[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[1][1][l] = (double)A->d0[((size_t)m0_1[l]) * 2 + 1];
    uint32_t m0_2[1];
    for (int l = 0; l < 1; l++) m0_2[l] = (uint32_t)A->m0[(i + l) * 4 + 2];
    for (int l = 0; l < 1; l++) p0_x[2][0][l] = (double)A->d0[((size_t)m0_2[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[2][1][l] = (double)A->d0[((size_t)m0_2[l]) * 2 + 1];
    uint32_t m0_3[1];
    for (int l = 0; l < 1; l++) m0_3[l] = (uint32_t)A->m0[(i + l) * 4 + 3];
    for (int l = 0; l < 1; l++) p0_x[3][0][l] = (double)A->d0[((size_t)m0_3[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[3][1][l] = (double)A->d0[((size_t)m0_3[l]) * 2 + 1];
    const double k_gamma = (double)A->c0_gamma;
    const double k_cfl = (double)A->c0_cfl;
    for (int l = 0; l < 1; l++) { /* lanes 1: adt_calc */
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
        ri_ = (1.0 / o1[0][0]);
        u_ = (ri_ * o1[1][0]);
        v_ = (ri_ * o1[2][0]);
        c_ = sqrt(((k_gamma * (k_gamma - 1.0)) * ((ri_ * o1[3][0]) - (0.5 * ((u_ * u_) + (v_ * v_))))));
        side_u_ = u_;
        side_v_ = v_;
        side_c_ = c_;
        side_dx_ = (p0_x[1][0][0] - p0_x[0][0][0]);
        side_dy_ = (p0_x[1][1][0] - p0_x[0][1][0]);
        total_ = (fl_abs_double(((side_u_ * side_dy_) - (side_v_ * side_dx_))) + (side_c_ * sqrt(((side_dx_ * side_dx_) + (side_dy_ * side_dy_)))));
        side_u_2_ = u_;
        side_v_2_ = v_;
        side_c_2_ = c_;
        side_dx_2_ = (p0_x[2][0][0] - p0_x[1][0][0]);
        side_dy_2_ = (p0_x[2][1][0] - p0_x[1][1][0]);
        total_ = (total_ + (fl_abs_double(((side_u_2_ * side_dy_2_) - (side_v_2_ * side_dx_2_))) + (side_c_2_ * sqrt(((side_dx_2_ * side_dx_2_) + (side_dy_2_ * side_dy_2_))))));
        side_u_3_ = u_;
        side_v_3_ = v_;
        side_c_3_ = c_;
        side_dx_3_ = (p0_x[3][0][0] - p0_x[2][0][0]);
        side_dy_3_ = (p0_x[3][1][0] - p0_x[2][1][0]);
        total_ = (total_ + (fl_abs_double(((side_u_3_ * side_dy_3_) - (side_v_3_ * side_dx_3_))) + (side_c_3_ * sqrt(((side_dx_3_ * side_dx_3_) + (side_dy_3_ * side_dy_3_))))));
        side_u_4_ = u_;
        side_v_4_ = v_;
        side_c_4_ = c_;
        side_dx_4_ = (p0_x[0][0][0] - p0_x[3][0][0]);
        side_dy_4_ = (p0_x[0][1][0] - p0_x[3][1][0]);
        total_ = (total_ + (fl_abs_double(((side_u_4_ * side_dy_4_) - (side_v_4_ * side_dx_4_))) + (side_c_4_ * sqrt(((side_dx_4_ * side_dx_4_) + (side_dy_4_ * side_dy_4_))))));
        v_adt_0_0 = (total_ / k_cfl);
        o2[0][0] = v_adt_0_0;
    } /* end lanes 1: adt_calc */
    }
    for (int l = 0; l < 1; l++) A->d2o[((size_t)(i + l))] = (double)o2[0][l];
}

static __attribute__((noinline)) void fl_ahead_1_run(const fl_ahead_1_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 8 <= end; i += 8) fl_ahead_1_run_8(A, i);
    for (; i < end; i++) fl_ahead_1_run_1(A, i);
}

void fl_ahead_1(const int64_t *S) {
    const fl_ahead_1_args *const A = (const fl_ahead_1_args *)S;
    const int64_t n = A->n;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < n; b += 1024) {
        fl_ahead_1_run(A, b, b + 1024 < n ? b + 1024 : n);
    }
}
