/* five_points: direct */
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void fl_loop_five_points_run(
    const int64_t n,
    __global const int64_t *restrict K,
    __global const double *restrict d0,
    __global double *restrict d1,
    __global const int32_t *restrict z1,
    const int64_t n0,
    const int64_t n1,
    const int64_t n2)
{
    const int item = (int)get_global_id(0);
    if (item < n) {
        const int x = item % (int)n2, y = item / (int)n2 % (int)n1, z = item / (int)n2 / (int)n1;
        const int i = (z * ((int)n1 + 2) + (y + 1)) * (int)n2 + x;
        const int y_m1 = y - 1;
        const int y_p1 = y + 1;
        const int x_m1 = x >= 1 ? x - 1 : x - 1 + (int)n2;
        const int x_p1 = x < (int)n2 - 1 ? x + 1 : x + 1 - (int)n2;
        double o1[1];
        double p0_u[5][1];
        const int i0_u_0 = (z * ((int)n1 + 2) + (y + 1)) * (int)n2 + x;
        p0_u[0][0] = d0[((int64_t)i0_u_0)];
        const int i0_u_1 = (z * ((int)n1 + 2) + (y + 1)) * (int)n2 + x_m1;
        p0_u[1][0] = d0[((int64_t)i0_u_1)];
        const int i0_u_2 = (z * ((int)n1 + 2) + (y + 1)) * (int)n2 + x_p1;
        p0_u[2][0] = d0[((int64_t)i0_u_2)];
        const int i0_u_3 = (z * ((int)n1 + 2) + (y_m1 + 1)) * (int)n2 + x;
        p0_u[3][0] = d0[((int64_t)i0_u_3)];
        const int i0_u_4 = (z * ((int)n1 + 2) + (y_p1 + 1)) * (int)n2 + x;
        p0_u[4][0] = d0[((int64_t)i0_u_4)];
        const double k_h = (double)as_double(K[0]);
        double v_v_0_0;
        v_v_0_0 = (p0_u[0][0] + (k_h * ((((p0_u[1][0] + p0_u[2][0]) + p0_u[3][0]) + p0_u[4][0]) - (4.0 * p0_u[0][0]))));
        o1[0] = v_v_0_0;
        d1[((int64_t)i)] = o1[0];
    }
}

