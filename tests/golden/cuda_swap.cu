/* swap: direct */
extern "C" __global__ void __launch_bounds__(512) fl_loop_swap_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    float *__restrict__ d0,
    const int64_t s0,
    const int64_t n0,
    const int64_t n1,
    const int64_t n2)
{
    const int item = (int)(blockIdx.x * 512 + threadIdx.x);
    if (item < n) {
        const int x = item % (int)n2, y = item / (int)n2 % (int)n1, z = item / (int)n2 / (int)n1;
        const int i = (z * (int)n1 + y) * (int)n2 + x;
        const int y_m1 = y >= 1 ? y - 1 : y - 1 + (int)n1;
        const int x_p1 = x < (int)n2 - 1 ? x + 1 : x + 1 - (int)n2;
        float p0_f[2][2];
        const int i0_f_0 = (z * (int)n1 + y) * (int)n2 + x_p1;
        p0_f[0][0] = d0[(0) * s0 + ((int64_t)i0_f_0)];
        const int i0_f_1 = (z * (int)n1 + y_m1) * (int)n2 + x;
        p0_f[1][1] = d0[(1) * s0 + ((int64_t)i0_f_1)];
        const float k_rate = (float)__int_as_float((int)K[0]);
        float here_;
        float v_f_0_0 = p0_f[0][0];
        float v_f_1_1 = p0_f[1][1];
        here_ = v_f_0_0;
        v_f_0_0 = (k_rate * v_f_1_1);
        v_f_1_1 = here_;
        p0_f[0][0] = v_f_0_0;
        p0_f[1][1] = v_f_1_1;
        d0[(0) * s0 + ((int64_t)i0_f_0)] = p0_f[0][0];
        d0[(1) * s0 + ((int64_t)i0_f_1)] = p0_f[1][1];
    }
}

