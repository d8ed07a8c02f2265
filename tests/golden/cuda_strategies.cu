/* chosen: atomic */
extern "C" __global__ void __launch_bounds__(128) fl_loop_chosen_0_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    const int32_t *__restrict__ d0,
    const double *__restrict__ d1,
    const int32_t *__restrict__ m0,
    double *__restrict__ d2)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    if (item < n) {
        const int i = item;
        int64_t o0[1];
        /* chosen */ {
            o0[0] = (int64_t)d0[((int64_t)i)];
            const int2 m0_row = *(const int2 *)(m0 + (int64_t)i * 2);
            const int m0_0 = m0_row.x;
            const int m0_1 = m0_row.y;
            double p0_u[2][1];
            p0_u[0][0] = d1[((int64_t)m0_0)];
            p0_u[1][0] = d1[((int64_t)m0_1)];
            double p0_r[2][1];
            const double k_limiter_most = (double)__longlong_as_double(K[0]);
            const double k_states_1_value = (double)__longlong_as_double(K[1]);
            const double k_states_2_value = (double)__longlong_as_double(K[2]);
            const double k_h = (double)__longlong_as_double(K[3]);
            double ghost_;
            double reflected_call_u_;
            double given_call_u_;
            double given_call_u_2_;
            double limited_call_a_;
            double limited_call_b_;
            double f_;
            double v_r_0_0;
            double v_r_1_0;
            ghost_ = p0_u[0][0];
            if ((((int64_t)o0[0]) == 0)) {
                reflected_call_u_ = p0_u[0][0];
                ghost_ = (-reflected_call_u_);
            }
            if ((((int64_t)o0[0]) == 1)) {
                given_call_u_ = p0_u[0][0];
                ghost_ = ((2.0 * k_states_1_value) - given_call_u_);
            }
            if ((((int64_t)o0[0]) == 2)) {
                given_call_u_2_ = p0_u[0][0];
                ghost_ = ((2.0 * k_states_2_value) - given_call_u_2_);
            }
            limited_call_a_ = (p0_u[1][0] - p0_u[0][0]);
            limited_call_b_ = (ghost_ - p0_u[0][0]);
            f_ = (k_h * fl_max_double(0.0, fl_min_double((k_limiter_most * limited_call_a_), (2.0 * limited_call_b_))));
            v_r_0_0 = f_;
            v_r_1_0 = (-f_);
            p0_r[0][0] = v_r_0_0;
            p0_r[1][0] = v_r_1_0;
            fl_atomic_add_double(&d2[((int64_t)m0_0)], (double)p0_r[0][0]);
            fl_atomic_add_double(&d2[((int64_t)m0_1)], (double)p0_r[1][0]);
        }
    }
}


/* chosen: atomic */
extern "C" __global__ void __launch_bounds__(128) fl_loop_chosen_1_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    const int32_t *__restrict__ d0,
    const double *__restrict__ d1,
    const int32_t *__restrict__ m0,
    const double *__restrict__ d2,
    double *__restrict__ d3)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    if (item < n) {
        const int i = item;
        int64_t o0[1];
        double o2[1];
        /* chosen */ {
            o2[0] = d2[((int64_t)i)];
            const int2 m0_row = *(const int2 *)(m0 + (int64_t)i * 2);
            const int m0_0 = m0_row.x;
            const int m0_1 = m0_row.y;
            double p0_u[2][1];
            p0_u[0][0] = d1[((int64_t)m0_0)];
            p0_u[1][0] = d1[((int64_t)m0_1)];
            double p0_r[2][1];
            const double k_limiter_most = (double)__longlong_as_double(K[0]);
            const double k_h = (double)__longlong_as_double(K[1]);
            double ghost_;
            double limited_call_a_;
            double limited_call_b_;
            double f_;
            double v_r_0_0;
            double v_r_1_0;
            ghost_ = p0_u[0][0];
            limited_call_a_ = (p0_u[1][0] - p0_u[0][0]);
            limited_call_b_ = (ghost_ - p0_u[0][0]);
            f_ = (k_h * fl_max_double(0.0, fl_min_double((k_limiter_most * limited_call_a_), (2.0 * limited_call_b_))));
            f_ = (f_ + o2[0]);
            v_r_0_0 = f_;
            v_r_1_0 = (-f_);
            p0_r[0][0] = v_r_0_0;
            p0_r[1][0] = v_r_1_0;
            fl_atomic_add_double(&d3[((int64_t)m0_0)], (double)p0_r[0][0]);
            fl_atomic_add_double(&d3[((int64_t)m0_1)], (double)p0_r[1][0]);
        }
    }
}

