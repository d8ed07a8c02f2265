/* update: direct */
extern "C" __global__ void __launch_bounds__(128) fl_loop_update_run(
    const int64_t n,
    const double *__restrict__ d0,
    double *__restrict__ d1,
    double *__restrict__ d2,
    const double *__restrict__ d3,
    double *__restrict__ d4,
    double *__restrict__ part0_rms)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    double g0_rms[1] = {0};
    if (item < n) {
        const int i = item;
        double o0[4];
        double o1[4];
        double o2[4];
        double o3[1];
        /* update */ {
            { const double2 w = *(const double2 *)(d0 + ((int64_t)i) * 4 + 0); o0[0] = w.x; o0[1] = w.y; }
            { const double2 w = *(const double2 *)(d0 + ((int64_t)i) * 4 + 2); o0[2] = w.x; o0[3] = w.y; }
            { const double2 w = *(const double2 *)(d2 + ((int64_t)i) * 4 + 0); o2[0] = w.x; o2[1] = w.y; }
            { const double2 w = *(const double2 *)(d2 + ((int64_t)i) * 4 + 2); o2[2] = w.x; o2[3] = w.y; }
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
        fl_store_rows_4_double(d1, i, (i | 31) < n, o1[0], o1[1], o1[2], o1[3]);
        fl_store_rows_4_double(d2, i, (i | 31) < n, o2[0], o2[1], o2[2], o2[3]);
    }
    const int l = (int)threadIdx.x;
    __shared__ double s_double[128];
    {
        double w = g0_rms[0];
        w = w + fl_down_double(w, 16);
        w = w + fl_down_double(w, 8);
        w = w + fl_down_double(w, 4);
        w = w + fl_down_double(w, 2);
        w = w + fl_down_double(w, 1);
        if (l % 32 == 0) s_double[l] = w;
    }
    __syncthreads();
    if (l % 128 == 0 && item < n) part0_rms[(item / 128) * 1 + 0] = s_double[l] + s_double[l + 32] + s_double[l + 64] + s_double[l + 96];
}

extern "C" __global__ void __launch_bounds__(1024) fl_loop_update_finish(
    const int64_t n,
    const double *__restrict__ d0,
    double *__restrict__ d1,
    double *__restrict__ d2,
    const double *__restrict__ d3,
    double *__restrict__ d4,
    double *__restrict__ part0_rms)
{
    const int l = (int)threadIdx.x;
    __shared__ double s_double[1024];
    for (int c = 0; c < 1; c++) {
        const int count = (int)((n + 127) / 128);
        for (int v = l; v < 1024; v += 1024) {
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
        __syncthreads();
        for (int h = 512; h > 0; h /= 2) {
            for (int v = l; v < h; v += 1024)
                s_double[v] = s_double[v] + s_double[v + h];
            __syncthreads();
        }
        if (l == 0) d4[c] = (double)d4[c] + s_double[0];
        __syncthreads();
    }
}

