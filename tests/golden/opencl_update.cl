/* update: direct */
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_loop_update_run(
    const int64_t n,
    __global const double *restrict d0,
    __global double *restrict d1,
    __global double *restrict d2,
    __global const double *restrict d3,
    __global double *restrict d4,
    __global double *restrict part0_rms)
{
    const int item = (int)get_global_id(0);
    double g0_rms[1] = {0};
    if (item < n) {
        const int i = item;
        double o0[4];
        double o1[4];
        double o2[4];
        double o3[1];
        /* update */ {
            { const double2 w = *(__global const double2 *)(d0 + ((int64_t)i) * 4 + 0); o0[0] = w.x; o0[1] = w.y; }
            { const double2 w = *(__global const double2 *)(d0 + ((int64_t)i) * 4 + 2); o0[2] = w.x; o0[3] = w.y; }
            { const double2 w = *(__global const double2 *)(d2 + ((int64_t)i) * 4 + 0); o2[0] = w.x; o2[1] = w.y; }
            { const double2 w = *(__global const double2 *)(d2 + ((int64_t)i) * 4 + 2); o2[2] = w.x; o2[3] = w.y; }
            o3[0] = d3[((int64_t)i)];
            double adti_;
            double change_;
            double v_q_0_0;
            double v_q_0_1;
            double v_q_0_2;
            double v_q_0_3;
            double v_res_0_0 = o2[0];
            double v_res_0_1 = o2[1];
            double v_res_0_2 = o2[2];
            double v_res_0_3 = o2[3];
            double v_rms_0_0;
            adti_ = (1.0 / o3[0]);
            change_ = (adti_ * v_res_0_0);
            v_q_0_0 = (o0[0] - change_);
            v_res_0_0 = 0.0;
            v_rms_0_0 = (change_ * change_);
            change_ = (adti_ * v_res_0_1);
            v_q_0_1 = (o0[1] - change_);
            v_res_0_1 = 0.0;
            v_rms_0_0 += (change_ * change_);
            change_ = (adti_ * v_res_0_2);
            v_q_0_2 = (o0[2] - change_);
            v_res_0_2 = 0.0;
            v_rms_0_0 += (change_ * change_);
            change_ = (adti_ * v_res_0_3);
            v_q_0_3 = (o0[3] - change_);
            v_res_0_3 = 0.0;
            v_rms_0_0 += (change_ * change_);
            o1[0] = v_q_0_0;
            o1[1] = v_q_0_1;
            o1[2] = v_q_0_2;
            o1[3] = v_q_0_3;
            o2[0] = v_res_0_0;
            o2[1] = v_res_0_1;
            o2[2] = v_res_0_2;
            o2[3] = v_res_0_3;
            g0_rms[0] = v_rms_0_0;
        }
        *(__global double2 *)(d1 + ((int64_t)i) * 4 + 0) = (double2)(o1[0], o1[1]);
        *(__global double2 *)(d1 + ((int64_t)i) * 4 + 2) = (double2)(o1[2], o1[3]);
        *(__global double2 *)(d2 + ((int64_t)i) * 4 + 0) = (double2)(o2[0], o2[1]);
        *(__global double2 *)(d2 + ((int64_t)i) * 4 + 2) = (double2)(o2[2], o2[3]);
    }
    const int l = (int)get_local_id(0);
    __local double s_double[128];
    s_double[l] = g0_rms[0];
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
    if (l % 128 == 0 && item < n) part0_rms[(item / 128) * 1 + 0] = s_double[l] + s_double[l + 32] + s_double[l + 64] + s_double[l + 96];
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void fl_loop_update_finish(
    const int64_t n,
    __global const double *restrict d0,
    __global double *restrict d1,
    __global double *restrict d2,
    __global const double *restrict d3,
    __global double *restrict d4,
    __global double *restrict part0_rms)
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
                    w[k] = p < count ? part0_rms[(int64_t)p * 1 + c] : 0;
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
        if (l == 0) d4[c] = (double)d4[c] + s_double[0];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

