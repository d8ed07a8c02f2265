__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_pack(
    const int64_t n,
    __global const int32_t *restrict list,
    __global const int32_t *restrict where,
    __global int64_t *restrict msg,
    __global const int64_t *restrict d0,
    __global const int32_t *restrict d1,
    const int64_t s1,
    __global const uint16_t *restrict d2,
    __global const uint8_t *restrict d3)
{
    const int k = (int)get_global_id(0);
    if (k < n) {
        const int64_t e = list[k];
        __global int64_t *const r0 = (__global int64_t *)(msg + where[k]);
        r0[0] = d0[(e) * 4 + 0];
        r0[1] = d0[(e) * 4 + 1];
        r0[2] = d0[(e) * 4 + 2];
        r0[3] = d0[(e) * 4 + 3];
        __global int32_t *const r1 = (__global int32_t *)(msg + where[k]);
        r1[8] = d1[(0) * s1 + (e)];
        r1[9] = d1[(1) * s1 + (e)];
        __global uint16_t *const r2 = (__global uint16_t *)(msg + where[k]);
        r2[20] = d2[((e) / 8) * 8 + (0) * 8 + (e) % 8];
        __global uint8_t *const r3 = (__global uint8_t *)(msg + where[k]);
        r3[42] = d3[(e) * 3 + 0];
        r3[43] = d3[(e) * 3 + 1];
        r3[44] = d3[(e) * 3 + 2];
    }
}

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_unpack(
    const int64_t n,
    __global const int32_t *restrict list,
    __global const int32_t *restrict where,
    __global const int64_t *restrict msg,
    __global int64_t *restrict d0,
    __global int32_t *restrict d1,
    const int64_t s1,
    __global uint16_t *restrict d2,
    __global uint8_t *restrict d3)
{
    const int k = (int)get_global_id(0);
    if (k < n) {
        const int64_t e = list[k];
        __global const int64_t *const r0 = (__global const int64_t *)(msg + where[k]);
        d0[(e) * 4 + 0] = r0[0];
        d0[(e) * 4 + 1] = r0[1];
        d0[(e) * 4 + 2] = r0[2];
        d0[(e) * 4 + 3] = r0[3];
        __global const int32_t *const r1 = (__global const int32_t *)(msg + where[k]);
        d1[(0) * s1 + (e)] = r1[8];
        d1[(1) * s1 + (e)] = r1[9];
        __global const uint16_t *const r2 = (__global const uint16_t *)(msg + where[k]);
        d2[((e) / 8) * 8 + (0) * 8 + (e) % 8] = r2[20];
        __global const uint8_t *const r3 = (__global const uint8_t *)(msg + where[k]);
        d3[(e) * 3 + 0] = r3[42];
        d3[(e) * 3 + 1] = r3[43];
        d3[(e) * 3 + 2] = r3[44];
    }
}
