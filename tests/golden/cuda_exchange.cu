extern "C" __global__ void __launch_bounds__(128) fl_pack(
    const int64_t n,
    const int32_t *__restrict__ list,
    const int32_t *__restrict__ where,
    int64_t *__restrict__ msg,
    const int64_t *__restrict__ d0,
    const int32_t *__restrict__ d1,
    const int64_t s1,
    const uint16_t *__restrict__ d2,
    const uint8_t *__restrict__ d3)
{
    const int k = (int)(blockIdx.x * 128 + threadIdx.x);
    if (k < n) {
        const int64_t e = list[k];
        int64_t *const r0 = (int64_t *)(msg + where[k]);
        r0[0] = d0[(e) * 4 + 0];
        r0[1] = d0[(e) * 4 + 1];
        r0[2] = d0[(e) * 4 + 2];
        r0[3] = d0[(e) * 4 + 3];
        int32_t *const r1 = (int32_t *)(msg + where[k]);
        r1[8] = d1[(0) * s1 + (e)];
        r1[9] = d1[(1) * s1 + (e)];
        uint16_t *const r2 = (uint16_t *)(msg + where[k]);
        r2[20] = d2[((e) / 8) * 8 + (0) * 8 + (e) % 8];
        uint8_t *const r3 = (uint8_t *)(msg + where[k]);
        r3[42] = d3[(e) * 3 + 0];
        r3[43] = d3[(e) * 3 + 1];
        r3[44] = d3[(e) * 3 + 2];
    }
}

extern "C" __global__ void __launch_bounds__(128) fl_unpack(
    const int64_t n,
    const int32_t *__restrict__ list,
    const int32_t *__restrict__ where,
    const int64_t *__restrict__ msg,
    int64_t *__restrict__ d0,
    int32_t *__restrict__ d1,
    const int64_t s1,
    uint16_t *__restrict__ d2,
    uint8_t *__restrict__ d3)
{
    const int k = (int)(blockIdx.x * 128 + threadIdx.x);
    if (k < n) {
        const int64_t e = list[k];
        const int64_t *const r0 = (const int64_t *)(msg + where[k]);
        d0[(e) * 4 + 0] = r0[0];
        d0[(e) * 4 + 1] = r0[1];
        d0[(e) * 4 + 2] = r0[2];
        d0[(e) * 4 + 3] = r0[3];
        const int32_t *const r1 = (const int32_t *)(msg + where[k]);
        d1[(0) * s1 + (e)] = r1[8];
        d1[(1) * s1 + (e)] = r1[9];
        const uint16_t *const r2 = (const uint16_t *)(msg + where[k]);
        d2[((e) / 8) * 8 + (0) * 8 + (e) % 8] = r2[20];
        const uint8_t *const r3 = (const uint8_t *)(msg + where[k]);
        d3[(e) * 3 + 0] = r3[42];
        d3[(e) * 3 + 1] = r3[43];
        d3[(e) * 3 + 2] = r3[44];
    }
}
