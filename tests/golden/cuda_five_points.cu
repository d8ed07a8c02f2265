/* five_points: direct */
extern "C" __global__ void __launch_bounds__(512) fl_loop_five_points_run(
    const int64_t n,
    const int64_t *__restrict__ K,
    const double *__restrict__ d0,
    double *__restrict__ d1,
    const int32_t *__restrict__ z1,
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
        const int i = (z * ((int)n1 + 2) + (y + 1)) * (int)n2 + x;
        const int to_y_m1 = -1 * (int)n2;
        const int to_y_p1 = 1 * (int)n2;
        const int to_x_m1 = x >= 1 ? -1 : ((int)n2 - 1) * 1;
        const int to_x_p1 = x < (int)n2 - 1 ? 1 : (1 - (int)n2) * 1;
        double o1[1];
        double p0_u[5][1];
        const int i0_u_0 = i;
        p0_u[0][0] = d0[((uint32_t)i0_u_0)];
        const int i0_u_1 = i + to_x_m1;
        p0_u[1][0] = d0[((uint32_t)i0_u_1)];
        const int i0_u_2 = i + to_x_p1;
        p0_u[2][0] = d0[((uint32_t)i0_u_2)];
        const int i0_u_3 = i + to_y_m1;
        p0_u[3][0] = d0[((uint32_t)i0_u_3)];
        const int i0_u_4 = i + to_y_p1;
        p0_u[4][0] = d0[((uint32_t)i0_u_4)];
        const double k_h = (double)__longlong_as_double(K[0]);
        double v_v_0_0;
        v_v_0_0 = (p0_u[0][0] + (k_h * ((((p0_u[1][0] + p0_u[2][0]) + p0_u[3][0]) + p0_u[4][0]) - (4.0 * p0_u[0][0]))));
        o1[0] = v_v_0_0;
        d1[((uint32_t)i)] = o1[0];
    }
}

