/* res_calc: two_pass */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int32_t * m0;
    double * d1;
    int32_t * m1;
    double * d2;
    double * d3;
    double * x3_res;
    double c0_gm1;
    double c0_eps;
    int64_t * i1_ptr;
    int32_t * i1_elem;
    uint8_t * i1_leg;
    int64_t i1_n;
} fl_loop_res_calc_args;

AI void fl_loop_res_calc_run_4(const fl_loop_res_calc_args *restrict A, const int64_t i) {
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
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 0] = (double)p0_res[0][0][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 1] = (double)p0_res[0][1][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 2] = (double)p0_res[0][2][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 3] = (double)p0_res[0][3][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 4] = (double)p0_res[1][0][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 5] = (double)p0_res[1][1][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 6] = (double)p0_res[1][2][l];
    for (int l = 0; l < 4; l++) A->x3_res[(i + l) * 8 + 7] = (double)p0_res[1][3][l];
    }
}

AI void fl_loop_res_calc_run_1(const fl_loop_res_calc_args *restrict A, const int64_t i) {
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
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 0] = (double)p0_res[0][0][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 1] = (double)p0_res[0][1][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 2] = (double)p0_res[0][2][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 3] = (double)p0_res[0][3][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 4] = (double)p0_res[1][0][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 5] = (double)p0_res[1][1][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 6] = (double)p0_res[1][2][l];
    for (int l = 0; l < 1; l++) A->x3_res[(i + l) * 8 + 7] = (double)p0_res[1][3][l];
    }
}

static __attribute__((noinline)) void fl_loop_res_calc_run(const fl_loop_res_calc_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 4 <= end; i += 4) fl_loop_res_calc_run_4(A, i);
    for (; i < end; i++) fl_loop_res_calc_run_1(A, i);
}

void fl_loop_res_calc(const int64_t *S) {
    const fl_loop_res_calc_args *const A = (const fl_loop_res_calc_args *)S;
    const int64_t n = A->n;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < n; b += 1024) {
        fl_loop_res_calc_run(A, b, b + 1024 < n ? b + 1024 : n);
    }
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t t = 0; t < A->i1_n; t++)
        for (int64_t k = A->i1_ptr[t]; k < A->i1_ptr[t + 1]; k++) {
            for (int c = 0; c < 4; c++) A->d3[(t) * 4 + c] = A->d3[(t) * 4 + c] + A->x3_res[(size_t)A->i1_elem[k] * 8 + A->i1_leg[k] * 4 + c];
        }
}
