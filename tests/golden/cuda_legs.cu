/* spread: atomic */
extern "C" __global__ void __launch_bounds__(128) fl_loop_spread_run(
    const int64_t n,
    const double *__restrict__ d0,
    const int32_t *__restrict__ m0,
    double *__restrict__ d1)
{
    const int item = (int)(blockIdx.x * 128 + threadIdx.x);
    if (item < n) {
        const int i = item;
        /* spread */ {
            double p0_x[66][2];
            for (int g = 0; g < 66; g++) {
                const int m0_g = m0[(int64_t)i * 66 + g];
                { const double2 w = *(const double2 *)(d0 + ((int64_t)m0_g) * 2 + 0); p0_x[g][0] = w.x; p0_x[g][1] = w.y; }
            }
            double p0_y[66][1];
            for (int g = 0; g < 66; g++) {
                p0_y[g][0] = 0;
            }
            double total_;
            int64_t c_;
            total_ = 0.0;
            for (int64_t for_c_t = 0, for_c_te = 66; for_c_t < for_c_te; for_c_t += 1) {
                c_ = for_c_t;
                total_ = (total_ + (p0_x[c_][0] * p0_x[c_][1]));
            }
            for (int64_t for_c_t = 0, for_c_te = 66; for_c_t < for_c_te; for_c_t += 1) {
                c_ = for_c_t;
                p0_y[c_][0] += (total_ * p0_x[c_][1]);
            }
            for (int g = 0; g < 66; g++) {
                const int m0_g = m0[(int64_t)i * 66 + g];
                fl_atomic_add_double(&d1[((int64_t)m0_g)], (double)p0_y[g][0]);
            }
        }
    }
}

