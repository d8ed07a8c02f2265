/* given.inlet: direct */
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_loop_given_inlet_run(
    const int64_t n,
    __global const int64_t *restrict K,
    __global const double *restrict d0,
    __global const double *restrict d1,
    __global const double *restrict d2,
    __global const double *restrict d3,
    __global double *restrict d4,
    __global double *restrict d5,
    __global double *restrict part0_wrong)
{
    const int item = (int)get_global_id(0);
    double g0_wrong[1] = {0};
    if (item < n) {
        const int i = item;
        double o0[3];
        double o2[1];
        double o3[4];
        double o4[4];
        /* given.inlet */ {
            o0[0] = d0[((int64_t)i) * 3 + 0];
            o0[1] = d0[((int64_t)i) * 3 + 1];
            o0[2] = d0[((int64_t)i) * 3 + 2];
            o2[0] = d2[((int64_t)i)];
            { const double2 w = *(__global const double2 *)(d3 + ((int64_t)i) * 4 + 0); o3[0] = w.x; o3[1] = w.y; }
            { const double2 w = *(__global const double2 *)(d3 + ((int64_t)i) * 4 + 2); o3[2] = w.x; o3[3] = w.y; }
            { const double2 w = *(__global const double2 *)(d4 + ((int64_t)i) * 4 + 0); o4[0] = w.x; o4[1] = w.y; }
            { const double2 w = *(__global const double2 *)(d4 + ((int64_t)i) * 4 + 2); o4[2] = w.x; o4[3] = w.y; }
            const double p0_now[3] = {(double)d1[0], (double)d1[1], (double)d1[2]};
            const double k_terms_0_least = (double)as_double(K[0]);
            const double k_terms_0_value_other_number = (double)as_double(K[1]);
            const double k_terms_1_least = (double)as_double(K[2]);
            const double k_terms_2_least = (double)as_double(K[3]);
            const double k_terms_3_least = (double)as_double(K[4]);
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
            double v_out_0_0 = o4[0];
            double v_out_0_1 = o4[1];
            double v_out_0_2 = o4[2];
            double v_out_0_3 = o4[3];
            double v_wrong_0_0;
            z_ = 0.0;
            z_ = o0[2];
            found_ = (p0_now[1] + k_terms_0_value_other_number);
            v_wrong_0_0 = ((fl_isfinite_double(found_) & (found_ > k_terms_0_least)) ? 0.0 : 1.0);
            found_ = (found_ * o3[0]);
            v_out_0_0 = found_;
            computed_call_x_ = o0[0];
            computed_call_y_ = o0[1];
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
            found_ = (found_ * o3[1]);
            v_out_0_1 = found_;
            times_call_x_ = o0[0];
            times_call_y_ = o0[1];
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
            found_ = (found_ * o3[2]);
            v_out_0_2 = found_;
            found_ = o2[0];
            v_wrong_0_0 += ((fl_isfinite_double(found_) & (found_ > k_terms_3_least)) ? 0.0 : 1.0);
            found_ = (found_ * o3[3]);
            v_out_0_3 = found_;
            o4[0] = v_out_0_0;
            o4[1] = v_out_0_1;
            o4[2] = v_out_0_2;
            o4[3] = v_out_0_3;
            g0_wrong[0] = v_wrong_0_0;
        }
        *(__global double2 *)(d4 + ((int64_t)i) * 4 + 0) = (double2)(o4[0], o4[1]);
        *(__global double2 *)(d4 + ((int64_t)i) * 4 + 2) = (double2)(o4[2], o4[3]);
    }
    const int l = (int)get_local_id(0);
    __local double s_double[128];
    s_double[l] = g0_wrong[0];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 16) s_double[l] = s_double[l] + s_double[l + 16];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 8) s_double[l] = s_double[l] + s_double[l + 8];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 4) s_double[l] = s_double[l] + s_double[l + 4];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 2) s_double[l] = s_double[l] + s_double[l + 2];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 1) s_double[l] = s_double[l] + s_double[l + 1];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 128 == 0 && item < n) part0_wrong[(item / 128) * 1 + 0] = s_double[l] + s_double[l + 32] + s_double[l + 64] + s_double[l + 96];
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void fl_loop_given_inlet_finish(
    const int64_t n,
    __global const int64_t *restrict K,
    __global const double *restrict d0,
    __global const double *restrict d1,
    __global const double *restrict d2,
    __global const double *restrict d3,
    __global double *restrict d4,
    __global double *restrict d5,
    __global double *restrict part0_wrong)
{
    const int l = (int)get_local_id(0);
    __local double s_double[1024];
    for (int c = 0; c < 1; c++) {
        const int count = (int)((n + 127) / 128);
        for (int v = l; v < 1024; v += 256) {
            double total = 0;
            for (int first = v; first < count; first += 16384) {
                double w[16];
                for (int k = 0; k < 16; k++) {
                    const int p = first + k * 1024;
                    w[k] = p < count ? part0_wrong[(int64_t)p * 1 + c] : 0;
                }
                for (int k = 0; k < 16; k++) total = total + w[k];
            }
            s_double[v] = total;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int h = 512; h > 0; h /= 2) {
            for (int v = l; v < h; v += 256)
                s_double[v] = s_double[v] + s_double[v + h];
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
        if (l == 0) d5[c] = (double)d5[c] + s_double[0];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

