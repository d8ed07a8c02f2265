/* drain: direct */
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_loop_drain_run(
    int64_t n,
    __global const float *restrict d0,
    const int64_t s0,
    __global double *restrict d1,
    __global double *restrict d2,
    __global double *restrict part0_total,
    __global const int32_t *restrict list,
    const int64_t n0,
    const int64_t n1,
    const int64_t n2,
    const int64_t q1,
    const int64_t h1,
    const int64_t q2,
    const int64_t h2)
{
    n = list[n];
    const int item = (int)get_global_id(0);
    double g0_total[1] = {0};
    if (item < n) {
        const int e = list[item];
        const uint32_t row = (uint32_t)((uint64_t)(uint32_t)e * (uint32_t)q2 >> (int)h2), layer = (uint32_t)((uint64_t)(uint32_t)row * (uint32_t)q1 >> (int)h1);
        const int x = e - (int)row * (int)n2, y = (int)row - (int)layer * (int)n1, z = (int)layer;
        const int i = e;
        const int to_y_m1 = y >= 1 ? -1 * (int)n2 : ((int)n1 - 1) * (int)n2;
        const int to_x_p1 = x < (int)n2 - 1 ? 1 : (1 - (int)n2) * 1;
        double o1[1];
        double p0_f[2][2];
        const int i0_f_0 = i + to_x_p1;
        p0_f[0][0] = (double)d0[0u * (uint32_t)s0 + (uint32_t)i0_f_0];
        const int i0_f_1 = i + to_y_m1;
        p0_f[1][1] = (double)d0[1u * (uint32_t)s0 + (uint32_t)i0_f_1];
        o1[0] = d1[((uint32_t)i)];
        double v_v_0_0 = o1[0];
        double v_total_0_0;
        v_v_0_0 = (((double)p0_f[0][0]) - ((double)p0_f[1][1]));
        v_total_0_0 = v_v_0_0;
        o1[0] = v_v_0_0;
        g0_total[0] = v_total_0_0;
        d1[((uint32_t)i)] = o1[0];
    }
    const int l = (int)get_local_id(0);
    __local double s_double[128];
    s_double[l] = g0_total[0];
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
    if (l % 128 == 0 && item < n) part0_total[(item / 128) * 1 + 0] = s_double[l] + s_double[l + 32] + s_double[l + 64] + s_double[l + 96];
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void fl_loop_drain_finish(
    int64_t n,
    __global const float *restrict d0,
    const int64_t s0,
    __global double *restrict d1,
    __global double *restrict d2,
    __global double *restrict part0_total,
    __global const int32_t *restrict list,
    const int64_t n0,
    const int64_t n1,
    const int64_t n2,
    const int64_t q1,
    const int64_t h1,
    const int64_t q2,
    const int64_t h2)
{
    n = list[n];
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
                    w[k] = p < count ? part0_total[(int64_t)p * 1 + c] : 0;
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
        if (l == 0) d2[c] = (double)d2[c] + s_double[0];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

