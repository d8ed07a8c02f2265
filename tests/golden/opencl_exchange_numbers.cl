__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_pack(
    const int64_t n,
    __global const int32_t *restrict list,
    const int64_t at,
    __global int64_t *restrict msg,
    __global const int32_t *restrict d0)
{
    const int k = (int)get_global_id(0);
    if (k < n) {
        __global int32_t *const r = (__global int32_t *)(msg + at);
        r[k] = d0[list[k]];
    }
}

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_unpack(
    const int64_t n,
    __global const int32_t *restrict list,
    const int64_t at,
    __global const int64_t *restrict msg,
    __global int32_t *restrict d0)
{
    const int k = (int)get_global_id(0);
    if (k < n) {
        __global const int32_t *const r = (__global const int32_t *)(msg + at);
        d0[list[k]] = r[k];
    }
}
