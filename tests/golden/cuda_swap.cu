/* swap: direct */
extern "C" __global__ void __launch_bounds__(512) fl_loop_swap_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    float *__restrict__ d0,
    const int64_t s0,
    const int64_t n0,
    const int64_t n1,
    const int64_t n2,
    const int64_t q1,
    const int64_t h1,
    const int64_t q2,
    const int64_t h2)
{
    const int item = (int)(blockIdx.x * 512 + threadIdx.x);
    if (item < n) {
        const uint32_t row = (uint32_t)((uint64_t)(uint32_t)item * (uint32_t)q2 >> (int)h2), layer = (uint32_t)((uint64_t)(uint32_t)row * (uint32_t)q1 >> (int)h1);
        const int x = item - (int)row * (int)n2, y = (int)row - (int)layer * (int)n1, z = (int)layer;
        const int i = item;
        const int to_y_m1 = y >= 1 ? -1 * (int)n2 : ((int)n1 - 1) * (int)n2;
        const int to_x_p1 = x < (int)n2 - 1 ? 1 : (1 - (int)n2) * 1;
        float p0_f[2][2];
        const int i0_f_0 = i + to_x_p1;
        p0_f[0][0] = d0[0u * (uint32_t)s0 + (uint32_t)i0_f_0];
        const int i0_f_1 = i + to_y_m1;
        p0_f[1][1] = d0[1u * (uint32_t)s0 + (uint32_t)i0_f_1];
        const float k_rate = (float)__int_as_float((int)K[0]);
        float here_;
        float v_f_0_0 = p0_f[0][0];
        float v_f_1_1 = p0_f[1][1];
        here_ = v_f_0_0;
        v_f_0_0 = (k_rate * v_f_1_1);
        v_f_1_1 = here_;
        p0_f[0][0] = v_f_0_0;
        p0_f[1][1] = v_f_1_1;
        d0[0u * (uint32_t)s0 + (uint32_t)i0_f_0] = p0_f[0][0];
        d0[1u * (uint32_t)s0 + (uint32_t)i0_f_1] = p0_f[1][1];
    }
}

