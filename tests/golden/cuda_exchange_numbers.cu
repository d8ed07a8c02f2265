extern "C" __global__ void __launch_bounds__(128) fl_pack(
    const int64_t n,
    const int32_t *__restrict__ list,
    const int64_t at,
    int64_t *__restrict__ msg,
    const int32_t *__restrict__ d0)
{
    const int k = (int)(blockIdx.x * 128 + threadIdx.x);
    if (k < n) {
        int32_t *const r = (int32_t *)(msg + at);
        r[k] = d0[list[k]];
    }
}

extern "C" __global__ void __launch_bounds__(128) fl_unpack(
    const int64_t n,
    const int32_t *__restrict__ list,
    const int64_t at,
    const int64_t *__restrict__ msg,
    int32_t *__restrict__ d0)
{
    const int k = (int)(blockIdx.x * 128 + threadIdx.x);
    if (k < n) {
        const int32_t *const r = (const int32_t *)(msg + at);
        d0[list[k]] = r[k];
    }
}
