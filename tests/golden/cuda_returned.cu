/* pull: direct */
extern "C" __global__ void __launch_bounds__(512) fl_loop_pull_run(
    const int64_t n,
    const float *__restrict__ d0,
    const int64_t s0,
    float *__restrict__ d1,
    const int64_t s1,
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
        const int to_y_p1 = y < (int)n1 - 1 ? 1 * (int)n2 : (1 - (int)n1) * (int)n2;
        const int to_x_m1 = -1;
        const int to_x_p1 = 1;
        const int turn_x_m1 = x < 1;
        const int turn_x_p1 = x >= (int)n2 - 1;
        float o1[2];
        float p0_f[2][2];
        const int i0_f_0 = turn_x_p1 ? i : i + to_y_p1 + to_x_p1;
        p0_f[0][0] = d0[(turn_x_p1 ? 1u : 0u) * (uint32_t)s0 + (uint32_t)i0_f_0];
        const int i0_f_1 = turn_x_m1 ? i : i + to_y_m1 + to_x_m1;
        p0_f[1][1] = d0[(turn_x_m1 ? 0u : 1u) * (uint32_t)s0 + (uint32_t)i0_f_1];
        float v_v_0_0;
        float v_v_0_1;
        v_v_0_0 = (p0_f[0][0] + p0_f[1][1]);
        v_v_0_1 = (p0_f[0][0] - p0_f[1][1]);
        o1[0] = v_v_0_0;
        o1[1] = v_v_0_1;
        d1[0u * (uint32_t)s1 + (uint32_t)i] = o1[0];
        d1[1u * (uint32_t)s1 + (uint32_t)i] = o1[1];
    }
}

