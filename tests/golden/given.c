/* given.inlet: direct */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    double * d1;
    double * d2;
    double * d3;
    double * d4;
    double * d5;
    double * part0_wrong;
    double c0_terms_0_least;
    double c0_terms_0_value_other_number;
    double c0_terms_1_least;
    double c0_terms_2_least;
    double c0_terms_3_least;
} fl_loop_given_inlet_args;

AI void fl_loop_given_inlet_run_8(const fl_loop_given_inlet_args *restrict A, const int64_t i, double (*restrict acc0_wrong)[16]) {
    FL_ALIGN double o0[3][8];
    FL_ALIGN double o2[1][8];
    FL_ALIGN double o3[4][8];
    FL_ALIGN double o4[4][8];
    { /* given.inlet */
    fl_loadseq2_float64_float64_8(o0 + 0, A->d0 + 0, 3, i);
    fl_loadseq1_float64_float64_8(o0 + 2, A->d0 + 2, 3, i);
    fl_loadseq1_float64_float64_8(o2 + 0, A->d2 + 0, 1, i);
    fl_loadseq4_float64_float64_8(o3 + 0, A->d3 + 0, 4, i);
    fl_loadseq4_float64_float64_8(o4 + 0, A->d4 + 0, 4, i);
    const double p0_now[3] = {(double)A->d1[0], (double)A->d1[1], (double)A->d1[2]};
    FL_ALIGN double p0_wrong[1][1][8];
    const double k_terms_0_least = (double)A->c0_terms_0_least;
    const double k_terms_0_value_other_number = (double)A->c0_terms_0_value_other_number;
    const double k_terms_1_least = (double)A->c0_terms_1_least;
    const double k_terms_2_least = (double)A->c0_terms_2_least;
    const double k_terms_3_least = (double)A->c0_terms_3_least;
#pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: given.inlet */
        double z_;
        double found_;
        double computed_call_x_;
        double computed_call_y_;
        double computed_call_z_;
        double formula_x_;
        double formula_y_;
        double formula_z_;
        double formula_t_;
        int t_;
        double remainder_a_;
        double greatest_a_;
        double greatest_b_;
        double times_call_x_;
        double times_call_y_;
        double times_call_z_;
        double computed_call_x_2_;
        double computed_call_y_2_;
        double computed_call_z_2_;
        double formula_x_2_;
        double formula_y_2_;
        double formula_z_2_;
        double formula_t_2_;
        int t_2_;
        double remainder_a_2_;
        double greatest_a_2_;
        double greatest_b_2_;
        double v_out_0_0 = o4[0][l];
        double v_out_0_1 = o4[1][l];
        double v_out_0_2 = o4[2][l];
        double v_out_0_3 = o4[3][l];
        double v_wrong_0_0;
        z_ = 0.0;
        z_ = o0[2][l];
        found_ = (p0_now[1] + k_terms_0_value_other_number);
        v_wrong_0_0 = ((fl_isfinite_double(found_) & (found_ > k_terms_0_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[0][l]);
        v_out_0_0 = found_;
        computed_call_x_ = o0[0][l];
        computed_call_y_ = o0[1][l];
        computed_call_z_ = z_;
        formula_x_ = computed_call_x_;
        formula_y_ = computed_call_y_;
        formula_z_ = computed_call_z_;
        formula_t_ = p0_now[0];
        t_ = (formula_x_ < formula_t_);
        if (t_) {
            remainder_a_ = formula_z_;
            t_ = (!((remainder_a_ - (0.5 * floor((remainder_a_ / 0.5)))) > 0.2));
        }
        greatest_a_ = formula_x_;
        greatest_b_ = formula_t_;
        found_ = (((2.0 * formula_y_) * sin((3.0 * formula_t_))) + (t_ ? 1.0 : pow((((greatest_a_ > greatest_b_) | (greatest_a_ != greatest_a_)) ? greatest_a_ : greatest_b_), 2.5)));
        v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_1_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[1][l]);
        v_out_0_1 = found_;
        times_call_x_ = o0[0][l];
        times_call_y_ = o0[1][l];
        times_call_z_ = z_;
        computed_call_x_2_ = times_call_x_;
        computed_call_y_2_ = times_call_y_;
        computed_call_z_2_ = times_call_z_;
        formula_x_2_ = computed_call_x_2_;
        formula_y_2_ = computed_call_y_2_;
        formula_z_2_ = computed_call_z_2_;
        formula_t_2_ = p0_now[0];
        t_2_ = (formula_x_2_ < formula_t_2_);
        if (t_2_) {
            remainder_a_2_ = formula_z_2_;
            t_2_ = (!((remainder_a_2_ - (0.5 * floor((remainder_a_2_ / 0.5)))) > 0.2));
        }
        greatest_a_2_ = formula_x_2_;
        greatest_b_2_ = formula_t_2_;
        found_ = (p0_now[2] * (((2.0 * formula_y_2_) * sin((3.0 * formula_t_2_))) + (t_2_ ? 1.0 : pow((((greatest_a_2_ > greatest_b_2_) | (greatest_a_2_ != greatest_a_2_)) ? greatest_a_2_ : greatest_b_2_), 2.5))));
        v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_2_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[2][l]);
        v_out_0_2 = found_;
        found_ = o2[0][l];
        v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_3_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[3][l]);
        v_out_0_3 = found_;
        o4[0][l] = v_out_0_0;
        o4[1][l] = v_out_0_1;
        o4[2][l] = v_out_0_2;
        o4[3][l] = v_out_0_3;
        p0_wrong[0][0][l] = v_wrong_0_0;
    } /* end lanes 8: given.inlet */
    for (int l = 0; l < 8; l++) acc0_wrong[0][(i & 8) + l] = acc0_wrong[0][(i & 8) + l] + p0_wrong[0][0][l];
    }
    fl_storeseq4_float64_float64_8(A->d4 + 0, 4, i, o4 + 0);
}

AI void fl_loop_given_inlet_run_1(const fl_loop_given_inlet_args *restrict A, const int64_t i, double (*restrict acc0_wrong)[16]) {
    FL_ALIGN double o0[3][1];
    FL_ALIGN double o2[1][1];
    FL_ALIGN double o3[4][1];
    FL_ALIGN double o4[4][1];
    { /* given.inlet */
    for (int l = 0; l < 1; l++) o0[0][l] = (double)A->d0[((i + l)) * 3 + 0];
    for (int l = 0; l < 1; l++) o0[1][l] = (double)A->d0[((i + l)) * 3 + 1];
    for (int l = 0; l < 1; l++) o0[2][l] = (double)A->d0[((i + l)) * 3 + 2];
    for (int l = 0; l < 1; l++) o2[0][l] = (double)A->d2[((i + l))];
    for (int l = 0; l < 1; l++) o3[0][l] = (double)A->d3[((i + l)) * 4 + 0];
    for (int l = 0; l < 1; l++) o3[1][l] = (double)A->d3[((i + l)) * 4 + 1];
    for (int l = 0; l < 1; l++) o3[2][l] = (double)A->d3[((i + l)) * 4 + 2];
    for (int l = 0; l < 1; l++) o3[3][l] = (double)A->d3[((i + l)) * 4 + 3];
    for (int l = 0; l < 1; l++) o4[0][l] = (double)A->d4[((i + l)) * 4 + 0];
    for (int l = 0; l < 1; l++) o4[1][l] = (double)A->d4[((i + l)) * 4 + 1];
    for (int l = 0; l < 1; l++) o4[2][l] = (double)A->d4[((i + l)) * 4 + 2];
    for (int l = 0; l < 1; l++) o4[3][l] = (double)A->d4[((i + l)) * 4 + 3];
    const double p0_now[3] = {(double)A->d1[0], (double)A->d1[1], (double)A->d1[2]};
    FL_ALIGN double p0_wrong[1][1][1];
    const double k_terms_0_least = (double)A->c0_terms_0_least;
    const double k_terms_0_value_other_number = (double)A->c0_terms_0_value_other_number;
    const double k_terms_1_least = (double)A->c0_terms_1_least;
    const double k_terms_2_least = (double)A->c0_terms_2_least;
    const double k_terms_3_least = (double)A->c0_terms_3_least;
    for (int l = 0; l < 1; l++) { /* lanes 1: given.inlet */
        double z_;
        double found_;
        double computed_call_x_;
        double computed_call_y_;
        double computed_call_z_;
        double formula_x_;
        double formula_y_;
        double formula_z_;
        double formula_t_;
        int t_;
        double remainder_a_;
        double greatest_a_;
        double greatest_b_;
        double times_call_x_;
        double times_call_y_;
        double times_call_z_;
        double computed_call_x_2_;
        double computed_call_y_2_;
        double computed_call_z_2_;
        double formula_x_2_;
        double formula_y_2_;
        double formula_z_2_;
        double formula_t_2_;
        int t_2_;
        double remainder_a_2_;
        double greatest_a_2_;
        double greatest_b_2_;
        double v_out_0_0 = o4[0][0];
        double v_out_0_1 = o4[1][0];
        double v_out_0_2 = o4[2][0];
        double v_out_0_3 = o4[3][0];
        double v_wrong_0_0;
        z_ = 0.0;
        z_ = o0[2][0];
        found_ = (p0_now[1] + k_terms_0_value_other_number);
        v_wrong_0_0 = ((fl_isfinite_double(found_) & (found_ > k_terms_0_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[0][0]);
        v_out_0_0 = found_;
        computed_call_x_ = o0[0][0];
        computed_call_y_ = o0[1][0];
        computed_call_z_ = z_;
        formula_x_ = computed_call_x_;
        formula_y_ = computed_call_y_;
        formula_z_ = computed_call_z_;
        formula_t_ = p0_now[0];
        t_ = (formula_x_ < formula_t_);
        if (t_) {
            remainder_a_ = formula_z_;
            t_ = (!((remainder_a_ - (0.5 * floor((remainder_a_ / 0.5)))) > 0.2));
        }
        greatest_a_ = formula_x_;
        greatest_b_ = formula_t_;
        found_ = (((2.0 * formula_y_) * sin((3.0 * formula_t_))) + (t_ ? 1.0 : pow((((greatest_a_ > greatest_b_) | (greatest_a_ != greatest_a_)) ? greatest_a_ : greatest_b_), 2.5)));
        v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_1_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[1][0]);
        v_out_0_1 = found_;
        times_call_x_ = o0[0][0];
        times_call_y_ = o0[1][0];
        times_call_z_ = z_;
        computed_call_x_2_ = times_call_x_;
        computed_call_y_2_ = times_call_y_;
        computed_call_z_2_ = times_call_z_;
        formula_x_2_ = computed_call_x_2_;
        formula_y_2_ = computed_call_y_2_;
        formula_z_2_ = computed_call_z_2_;
        formula_t_2_ = p0_now[0];
        t_2_ = (formula_x_2_ < formula_t_2_);
        if (t_2_) {
            remainder_a_2_ = formula_z_2_;
            t_2_ = (!((remainder_a_2_ - (0.5 * floor((remainder_a_2_ / 0.5)))) > 0.2));
        }
        greatest_a_2_ = formula_x_2_;
        greatest_b_2_ = formula_t_2_;
        found_ = (p0_now[2] * (((2.0 * formula_y_2_) * sin((3.0 * formula_t_2_))) + (t_2_ ? 1.0 : pow((((greatest_a_2_ > greatest_b_2_) | (greatest_a_2_ != greatest_a_2_)) ? greatest_a_2_ : greatest_b_2_), 2.5))));
        v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_2_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[2][0]);
        v_out_0_2 = found_;
        found_ = o2[0][0];
        v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_3_least)) ? 0.0 : 1.0);
        found_ = (found_ * o3[3][0]);
        v_out_0_3 = found_;
        o4[0][0] = v_out_0_0;
        o4[1][0] = v_out_0_1;
        o4[2][0] = v_out_0_2;
        o4[3][0] = v_out_0_3;
        p0_wrong[0][0][0] = v_wrong_0_0;
    } /* end lanes 1: given.inlet */
    for (int l = 0; l < 1; l++) acc0_wrong[0][(i & 15) + l] = acc0_wrong[0][(i & 15) + l] + p0_wrong[0][0][l];
    }
    for (int l = 0; l < 1; l++) A->d4[((size_t)(i + l)) * 4 + 0] = (double)o4[0][l];
    for (int l = 0; l < 1; l++) A->d4[((size_t)(i + l)) * 4 + 1] = (double)o4[1][l];
    for (int l = 0; l < 1; l++) A->d4[((size_t)(i + l)) * 4 + 2] = (double)o4[2][l];
    for (int l = 0; l < 1; l++) A->d4[((size_t)(i + l)) * 4 + 3] = (double)o4[3][l];
}

static __attribute__((noinline)) void fl_loop_given_inlet_run(const fl_loop_given_inlet_args *restrict A, int64_t i, const int64_t end, double (*restrict acc0_wrong)[16]) {
    for (; i + 8 <= end; i += 8) fl_loop_given_inlet_run_8(A, i, acc0_wrong);
    for (; i < end; i++) fl_loop_given_inlet_run_1(A, i, acc0_wrong);
}

void fl_loop_given_inlet(const int64_t *S) {
    const fl_loop_given_inlet_args *const A = (const fl_loop_given_inlet_args *)S;
    const int64_t n = A->n;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < n; b += 1024) {
        FL_ALIGN double acc0_wrong[1][16];
        for (int c = 0; c < 1; c++) for (int l = 0; l < 16; l++) acc0_wrong[c][l] = 0;
        fl_loop_given_inlet_run(A, b, b + 1024 < n ? b + 1024 : n, acc0_wrong);
        for (int c = 0; c < 1; c++) {
            for (int h = 8; h > 0; h /= 2) for (int l = 0; l < h; l++) acc0_wrong[c][l] = acc0_wrong[c][l] + acc0_wrong[c][l + h];
            A->part0_wrong[(b / 1024) * 1 + c] = acc0_wrong[c][0];
        }
    }
    for (int c = 0; c < 1; c++) {
        double total = 0;
        for (int64_t p = 0; p < (n + 1023) / 1024; p++) total = total + A->part0_wrong[p * 1 + c];
        A->d5[c] = (double)(A->d5[c] + total);
    }
}
