/* chosen: block_colour */
typedef struct {
    int64_t n;
    int64_t threads;
    int32_t * d0;
    double * d1;
    int32_t * m0;
    double * d2;
    double c0_limiter_most;
    double c0_states_1_value;
    double c0_states_2_value;
    double c0_h;
    int64_t n_colours;
    int64_t * colour_off;
    int32_t * blocks;
    int64_t * block_off;
} fl_loop_chosen_0_args;

AI void fl_loop_chosen_0_run_4(const fl_loop_chosen_0_args *restrict A, const int64_t i) {
    FL_ALIGN int64_t o0[1][4];
    { /* chosen */
    for (int l = 0; l < 4; l++) o0[0][l] = (int64_t)A->d0[((i + l))];
    FL_ALIGN double p0_u[2][1][4];
    uint32_t m0_0[4];
    for (int l = 0; l < 4; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    fl_load1_float64_float64_4(p0_u[0] + 0, A->d1 + 0, 1, m0_0);
    uint32_t m0_1[4];
    for (int l = 0; l < 4; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    fl_load1_float64_float64_4(p0_u[1] + 0, A->d1 + 0, 1, m0_1);
    FL_ALIGN double p0_r[2][1][4];
    const double k_limiter_most = (double)A->c0_limiter_most;
    const double k_states_1_value = (double)A->c0_states_1_value;
    const double k_states_2_value = (double)A->c0_states_2_value;
    const double k_h = (double)A->c0_h;
#pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: chosen */
        double ghost_;
        double reflected_call_u_;
        double given_call_u_;
        double given_call_u_2_;
        double limited_call_a_;
        double limited_call_b_;
        double f_;
        double v_r_0_0;
        double v_r_1_0;
        ghost_ = p0_u[0][0][l];
        if ((((int64_t)o0[0][l]) == 0)) {
            reflected_call_u_ = p0_u[0][0][l];
            ghost_ = (-reflected_call_u_);
        }
        if ((((int64_t)o0[0][l]) == 1)) {
            given_call_u_ = p0_u[0][0][l];
            ghost_ = ((2.0 * k_states_1_value) - given_call_u_);
        }
        if ((((int64_t)o0[0][l]) == 2)) {
            given_call_u_2_ = p0_u[0][0][l];
            ghost_ = ((2.0 * k_states_2_value) - given_call_u_2_);
        }
        limited_call_a_ = (p0_u[1][0][l] - p0_u[0][0][l]);
        limited_call_b_ = (ghost_ - p0_u[0][0][l]);
        f_ = (k_h * fl_max_double(0.0, fl_min_double((k_limiter_most * limited_call_a_), (2.0 * limited_call_b_))));
        v_r_0_0 = f_;
        v_r_1_0 = (-f_);
        p0_r[0][0][l] = v_r_0_0;
        p0_r[1][0][l] = v_r_1_0;
    } /* end lanes 4: chosen */
    const double *const x2_r_0_0 = p0_r[0][0];
    *((A->d2 + (size_t)m0_0[0] * 1)) += (double)x2_r_0_0[0];
    *((A->d2 + (size_t)m0_1[0] * 1)) -= (double)x2_r_0_0[0];
    *((A->d2 + (size_t)m0_0[1] * 1)) += (double)x2_r_0_0[1];
    *((A->d2 + (size_t)m0_1[1] * 1)) -= (double)x2_r_0_0[1];
    *((A->d2 + (size_t)m0_0[2] * 1)) += (double)x2_r_0_0[2];
    *((A->d2 + (size_t)m0_1[2] * 1)) -= (double)x2_r_0_0[2];
    *((A->d2 + (size_t)m0_0[3] * 1)) += (double)x2_r_0_0[3];
    *((A->d2 + (size_t)m0_1[3] * 1)) -= (double)x2_r_0_0[3];
    }
}

AI void fl_loop_chosen_0_run_1(const fl_loop_chosen_0_args *restrict A, const int64_t i) {
    FL_ALIGN int64_t o0[1][1];
    { /* chosen */
    for (int l = 0; l < 1; l++) o0[0][l] = (int64_t)A->d0[((i + l))];
    FL_ALIGN double p0_u[2][1][1];
    uint32_t m0_0[1];
    for (int l = 0; l < 1; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_u[0][0][l] = (double)A->d1[((size_t)m0_0[l])];
    uint32_t m0_1[1];
    for (int l = 0; l < 1; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    for (int l = 0; l < 1; l++) p0_u[1][0][l] = (double)A->d1[((size_t)m0_1[l])];
    FL_ALIGN double p0_r[2][1][1];
    const double k_limiter_most = (double)A->c0_limiter_most;
    const double k_states_1_value = (double)A->c0_states_1_value;
    const double k_states_2_value = (double)A->c0_states_2_value;
    const double k_h = (double)A->c0_h;
    for (int l = 0; l < 1; l++) { /* lanes 1: chosen */
        double ghost_;
        double reflected_call_u_;
        double given_call_u_;
        double given_call_u_2_;
        double limited_call_a_;
        double limited_call_b_;
        double f_;
        double v_r_0_0;
        double v_r_1_0;
        ghost_ = p0_u[0][0][0];
        if ((((int64_t)o0[0][0]) == 0)) {
            reflected_call_u_ = p0_u[0][0][0];
            ghost_ = (-reflected_call_u_);
        }
        if ((((int64_t)o0[0][0]) == 1)) {
            given_call_u_ = p0_u[0][0][0];
            ghost_ = ((2.0 * k_states_1_value) - given_call_u_);
        }
        if ((((int64_t)o0[0][0]) == 2)) {
            given_call_u_2_ = p0_u[0][0][0];
            ghost_ = ((2.0 * k_states_2_value) - given_call_u_2_);
        }
        limited_call_a_ = (p0_u[1][0][0] - p0_u[0][0][0]);
        limited_call_b_ = (ghost_ - p0_u[0][0][0]);
        f_ = (k_h * fl_max_double(0.0, fl_min_double((k_limiter_most * limited_call_a_), (2.0 * limited_call_b_))));
        v_r_0_0 = f_;
        v_r_1_0 = (-f_);
        p0_r[0][0][0] = v_r_0_0;
        p0_r[1][0][0] = v_r_1_0;
    } /* end lanes 1: chosen */
    for (int l = 0; l < 1; l++) {
        A->d2[((size_t)m0_0[l])] += (double)p0_r[0][0][l];
        A->d2[((size_t)m0_1[l])] += (double)p0_r[1][0][l];
    }
    }
}

static __attribute__((noinline)) void fl_loop_chosen_0_run(const fl_loop_chosen_0_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 4 <= end; i += 4) fl_loop_chosen_0_run_4(A, i);
    for (; i < end; i++) fl_loop_chosen_0_run_1(A, i);
}

void fl_loop_chosen_0(const int64_t *S) {
    const fl_loop_chosen_0_args *const A = (const fl_loop_chosen_0_args *)S;
    for (int64_t colour = 0; colour < A->n_colours; colour++) {
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
        for (int64_t k = A->colour_off[colour]; k < A->colour_off[colour + 1]; k++) {
            const int64_t block = A->blocks[k];
            fl_loop_chosen_0_run(A, A->block_off[block], A->block_off[block + 1]);
        }
    }
}

/* chosen: block_colour */
typedef struct {
    int64_t n;
    int64_t threads;
    int32_t * d0;
    double * d1;
    int32_t * m0;
    double * d2;
    double * d3;
    double c0_limiter_most;
    double c0_h;
    int64_t n_colours;
    int64_t * colour_off;
    int32_t * blocks;
    int64_t * block_off;
} fl_loop_chosen_1_args;

AI void fl_loop_chosen_1_run_4(const fl_loop_chosen_1_args *restrict A, const int64_t i) {
    FL_ALIGN int64_t o0[1][4];
    FL_ALIGN double o2[1][4];
    { /* chosen */
    fl_loadseq1_float64_float64_4(o2 + 0, A->d2 + 0, 1, i);
    FL_ALIGN double p0_u[2][1][4];
    uint32_t m0_0[4];
    for (int l = 0; l < 4; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    fl_load1_float64_float64_4(p0_u[0] + 0, A->d1 + 0, 1, m0_0);
    uint32_t m0_1[4];
    for (int l = 0; l < 4; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    fl_load1_float64_float64_4(p0_u[1] + 0, A->d1 + 0, 1, m0_1);
    FL_ALIGN double p0_r[2][1][4];
    const double k_limiter_most = (double)A->c0_limiter_most;
    const double k_h = (double)A->c0_h;
#pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: chosen */
        double ghost_;
        double limited_call_a_;
        double limited_call_b_;
        double f_;
        double v_r_0_0;
        double v_r_1_0;
        ghost_ = p0_u[0][0][l];
        limited_call_a_ = (p0_u[1][0][l] - p0_u[0][0][l]);
        limited_call_b_ = (ghost_ - p0_u[0][0][l]);
        f_ = (k_h * fl_max_double(0.0, fl_min_double((k_limiter_most * limited_call_a_), (2.0 * limited_call_b_))));
        f_ = (f_ + o2[0][l]);
        v_r_0_0 = f_;
        v_r_1_0 = (-f_);
        p0_r[0][0][l] = v_r_0_0;
        p0_r[1][0][l] = v_r_1_0;
    } /* end lanes 4: chosen */
    const double *const x3_r_0_0 = p0_r[0][0];
    *((A->d3 + (size_t)m0_0[0] * 1)) += (double)x3_r_0_0[0];
    *((A->d3 + (size_t)m0_1[0] * 1)) -= (double)x3_r_0_0[0];
    *((A->d3 + (size_t)m0_0[1] * 1)) += (double)x3_r_0_0[1];
    *((A->d3 + (size_t)m0_1[1] * 1)) -= (double)x3_r_0_0[1];
    *((A->d3 + (size_t)m0_0[2] * 1)) += (double)x3_r_0_0[2];
    *((A->d3 + (size_t)m0_1[2] * 1)) -= (double)x3_r_0_0[2];
    *((A->d3 + (size_t)m0_0[3] * 1)) += (double)x3_r_0_0[3];
    *((A->d3 + (size_t)m0_1[3] * 1)) -= (double)x3_r_0_0[3];
    }
}

AI void fl_loop_chosen_1_run_1(const fl_loop_chosen_1_args *restrict A, const int64_t i) {
    FL_ALIGN int64_t o0[1][1];
    FL_ALIGN double o2[1][1];
    { /* chosen */
    for (int l = 0; l < 1; l++) o2[0][l] = (double)A->d2[((i + l))];
    FL_ALIGN double p0_u[2][1][1];
    uint32_t m0_0[1];
    for (int l = 0; l < 1; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_u[0][0][l] = (double)A->d1[((size_t)m0_0[l])];
    uint32_t m0_1[1];
    for (int l = 0; l < 1; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    for (int l = 0; l < 1; l++) p0_u[1][0][l] = (double)A->d1[((size_t)m0_1[l])];
    FL_ALIGN double p0_r[2][1][1];
    const double k_limiter_most = (double)A->c0_limiter_most;
    const double k_h = (double)A->c0_h;
    for (int l = 0; l < 1; l++) { /* lanes 1: chosen */
        double ghost_;
        double limited_call_a_;
        double limited_call_b_;
        double f_;
        double v_r_0_0;
        double v_r_1_0;
        ghost_ = p0_u[0][0][0];
        limited_call_a_ = (p0_u[1][0][0] - p0_u[0][0][0]);
        limited_call_b_ = (ghost_ - p0_u[0][0][0]);
        f_ = (k_h * fl_max_double(0.0, fl_min_double((k_limiter_most * limited_call_a_), (2.0 * limited_call_b_))));
        f_ = (f_ + o2[0][0]);
        v_r_0_0 = f_;
        v_r_1_0 = (-f_);
        p0_r[0][0][0] = v_r_0_0;
        p0_r[1][0][0] = v_r_1_0;
    } /* end lanes 1: chosen */
    for (int l = 0; l < 1; l++) {
        A->d3[((size_t)m0_0[l])] += (double)p0_r[0][0][l];
        A->d3[((size_t)m0_1[l])] += (double)p0_r[1][0][l];
    }
    }
}

static __attribute__((noinline)) void fl_loop_chosen_1_run(const fl_loop_chosen_1_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 4 <= end; i += 4) fl_loop_chosen_1_run_4(A, i);
    for (; i < end; i++) fl_loop_chosen_1_run_1(A, i);
}

void fl_loop_chosen_1(const int64_t *S) {
    const fl_loop_chosen_1_args *const A = (const fl_loop_chosen_1_args *)S;
    for (int64_t colour = 0; colour < A->n_colours; colour++) {
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
        for (int64_t k = A->colour_off[colour]; k < A->colour_off[colour + 1]; k++) {
            const int64_t block = A->blocks[k];
            fl_loop_chosen_1_run(A, A->block_off[block], A->block_off[block + 1]);
        }
    }
}
