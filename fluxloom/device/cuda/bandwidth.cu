/* Memory bandwidth, after McCalpin's STREAM: copy by scalars and by 16 bytes, and triad. */
typedef long long int64_t;

extern "C" __global__ void __launch_bounds__(256) fl_fill(double *__restrict__ a, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 1.0 + 1e-9 * (double)i;
}

extern "C" __global__ void __launch_bounds__(256)
fl_copy_plain(const double *__restrict__ a, double *__restrict__ c, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i];
}

extern "C" __global__ void __launch_bounds__(256)
fl_copy_wide(const double2 *__restrict__ a, double2 *__restrict__ c, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i];
}

extern "C" __global__ void __launch_bounds__(256)
fl_triad(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ c, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + 3.0 * b[i];
}
