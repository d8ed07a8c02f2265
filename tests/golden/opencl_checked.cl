/* faulty (checked): direct */
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void fl_loop_faulty__checked__run(
    const int64_t n,
    __global const double *restrict d0,
    __global const int64_t *restrict d1,
    __global const double *restrict d2,
    __global const int32_t *restrict m0,
    __global const int64_t *restrict d3,
    __global int64_t *restrict d4,
    __global int64_t *restrict part0_check_first1)
{
    const int item = (int)get_global_id(0);
    int64_t g0_check_first1[1] = {INT64_MAX};
    if (item < n) {
        const int i = item;
        double o0[3];
        int64_t o1[1];
        int64_t o3[1];
        /* faulty (checked) */ {
            o0[0] = d0[((int64_t)i) * 3 + 0];
            o0[1] = d0[((int64_t)i) * 3 + 1];
            o0[2] = d0[((int64_t)i) * 3 + 2];
            o1[0] = d1[((int64_t)i)];
            o3[0] = d3[((int64_t)i)];
            const int2 m0_row = *(__global const int2 *)(m0 + (int64_t)i * 2);
            const int m0_0 = m0_row.x;
            const int m0_1 = m0_row.y;
            double p0_u[2][1];
            p0_u[0][0] = d2[((int64_t)m0_0)];
            p0_u[1][0] = d2[((int64_t)m0_1)];
            int64_t j_;
            int64_t check_site1_;
            int64_t check_excused1_;
            int64_t check_t1_;
            int64_t check_t2_;
            int64_t check_t3_;
            int64_t check_t4_;
            double check_t5_;
            double check_t6_;
            double check_t7_;
            double check_t8_;
            double check_t9_;
            double check_t10_;
            double check_t11_;
            double check_t12_;
            int64_t v_check_first1_0_0 = INT64_MAX;
            check_site1_ = 0;
            check_excused1_ = 0;
            check_t1_ = o1[0];
            if ((((2 == 0) | (check_t1_ == 0)) ? 0 : ((2 > 0) ? ((check_t1_ > 0) ? (2 > fl_floordiv_int64_t(INT64_C(9223372036854775807), check_t1_)) : ((check_t1_ == -1) ? 0 : (2 > fl_floordiv_int64_t((-INT64_C(9223372036854775807) - 1), check_t1_)))) : ((check_t1_ > 0) ? ((2 == -1) ? 0 : (check_t1_ > fl_floordiv_int64_t((-INT64_C(9223372036854775807) - 1), 2))) : ((check_t1_ == (-INT64_C(9223372036854775807) - 1)) ? 1 : (2 < fl_neg_int64_t(fl_floordiv_int64_t(INT64_C(9223372036854775807), fl_neg_int64_t(check_t1_))))))))) {
                if ((check_site1_ == 0)) {
                    check_site1_ = 1;
                }
                check_t2_ = 0;
            } else {
                check_t2_ = fl_mul_int64_t(2, check_t1_);
            }
            if (((1 > 0) ? (check_t2_ > (INT64_C(9223372036854775807) - 1)) : (check_t2_ < fl_sub_int64_t((-INT64_C(9223372036854775807) - 1), 1)))) {
                if ((check_site1_ == 0)) {
                    check_site1_ = 2;
                }
                check_t3_ = 0;
            } else {
                check_t3_ = fl_add_int64_t(check_t2_, 1);
            }
            j_ = check_t3_;
            if (((j_ < 0) | (j_ >= 3))) {
                if ((check_site1_ == 0)) {
                    check_site1_ = 3;
                }
                check_t4_ = 0;
            } else {
                check_t4_ = j_;
            }
            check_t5_ = o0[check_t4_];
            if ((!fl_isfinite_double(check_t5_))) {
                if ((check_excused1_ < 2)) {
                    check_excused1_ = 2;
                }
            }
            check_t6_ = p0_u[1][0];
            if ((!fl_isfinite_double(check_t6_))) {
                if ((check_excused1_ < 2)) {
                    check_excused1_ = 2;
                }
            }
            check_t7_ = p0_u[0][0];
            if ((!fl_isfinite_double(check_t7_))) {
                if ((check_excused1_ < 2)) {
                    check_excused1_ = 2;
                }
            }
            check_t8_ = (check_t6_ - check_t7_);
            if ((check_t8_ == 0.0)) {
                if ((check_site1_ == 0)) {
                    check_site1_ = 4;
                }
                check_t9_ = 1.0;
            } else {
                check_t9_ = check_t8_;
            }
            check_t10_ = (check_t5_ / check_t9_);
            if ((!fl_isfinite_double(check_t10_))) {
                if ((check_excused1_ < (fl_isnan_double(check_t10_) ? 2 : 1))) {
                    if ((check_site1_ == 0)) {
                        check_site1_ = 5;
                    }
                }
            }
            check_t11_ = o0[0];
            if ((!fl_isfinite_double(check_t11_))) {
                if ((check_excused1_ < 2)) {
                    check_excused1_ = 2;
                }
            }
            check_t12_ = (-check_t11_);
            if ((!fl_isfinite_double(check_t12_))) {
                if ((check_excused1_ < (fl_isnan_double(check_t12_) ? 2 : 1))) {
                    if ((check_site1_ == 0)) {
                        check_site1_ = 6;
                    }
                }
            }
            if ((check_site1_ > 0)) {
                v_check_first1_0_0 = fl_min_int64_t(v_check_first1_0_0, fl_add_int64_t(fl_mul_int64_t(o3[0], 65536), check_site1_));
            }
            g0_check_first1[0] = v_check_first1_0_0;
        }
    }
    const int l = (int)get_local_id(0);
    __local int64_t s_int64_t[128];
    s_int64_t[l] = g0_check_first1[0];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 16) s_int64_t[l] = fl_min_int64_t(s_int64_t[l], s_int64_t[l + 16]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 8) s_int64_t[l] = fl_min_int64_t(s_int64_t[l], s_int64_t[l + 8]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 4) s_int64_t[l] = fl_min_int64_t(s_int64_t[l], s_int64_t[l + 4]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 2) s_int64_t[l] = fl_min_int64_t(s_int64_t[l], s_int64_t[l + 2]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 32 < 1) s_int64_t[l] = fl_min_int64_t(s_int64_t[l], s_int64_t[l + 1]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l % 128 == 0 && item < n) part0_check_first1[(item / 128) * 1 + 0] = fl_min_int64_t(fl_min_int64_t(fl_min_int64_t(s_int64_t[l], s_int64_t[l + 32]), s_int64_t[l + 64]), s_int64_t[l + 96]);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void fl_loop_faulty__checked__finish(
    const int64_t n,
    __global const double *restrict d0,
    __global const int64_t *restrict d1,
    __global const double *restrict d2,
    __global const int32_t *restrict m0,
    __global const int64_t *restrict d3,
    __global int64_t *restrict d4,
    __global int64_t *restrict part0_check_first1)
{
    const int l = (int)get_local_id(0);
    __local int64_t s_int64_t[1024];
    for (int c = 0; c < 1; c++) {
        const int count = (int)((n + 127) / 128);
        for (int v = l; v < 1024; v += 256) {
            int64_t total = INT64_MAX;
            for (int first = v; first < count; first += 16384) {
                int64_t w[16];
                for (int k = 0; k < 16; k++) {
                    const int p = first + k * 1024;
                    w[k] = p < count ? part0_check_first1[(int64_t)p * 1 + c] : INT64_MAX;
                }
                for (int k = 0; k < 16; k++) total = fl_min_int64_t(total, w[k]);
            }
            s_int64_t[v] = total;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int h = 512; h > 0; h /= 2) {
            for (int v = l; v < h; v += 256)
                s_int64_t[v] = fl_min_int64_t(s_int64_t[v], s_int64_t[v + h]);
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
        if (l == 0) d4[c] = (int64_t)fl_min_int64_t(d4[c], s_int64_t[0]);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

