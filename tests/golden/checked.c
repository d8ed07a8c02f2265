/* faulty (checked): direct */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int64_t * d1;
    double * d2;
    int32_t * m0;
    int64_t * d3;
    int64_t * d4;
    int64_t * part0_check_first1;
} fl_loop_faulty__checked__args;

AI void fl_loop_faulty__checked__run_1(const fl_loop_faulty__checked__args *restrict A, const int64_t i, int64_t (*restrict acc0_check_first1)[16]) {
    FL_ALIGN double o0[3][1];
    FL_ALIGN int64_t o1[1][1];
    FL_ALIGN int64_t o3[1][1];
    { /* faulty (checked) */
    for (int l = 0; l < 1; l++) o0[0][l] = (double)A->d0[((i + l)) * 3 + 0];
    for (int l = 0; l < 1; l++) o0[1][l] = (double)A->d0[((i + l)) * 3 + 1];
    for (int l = 0; l < 1; l++) o0[2][l] = (double)A->d0[((i + l)) * 3 + 2];
    for (int l = 0; l < 1; l++) o1[0][l] = (int64_t)A->d1[((i + l))];
    for (int l = 0; l < 1; l++) o3[0][l] = (int64_t)A->d3[((i + l))];
    FL_ALIGN double p0_u[2][1][1];
    uint32_t m0_0[1];
    for (int l = 0; l < 1; l++) m0_0[l] = (uint32_t)A->m0[(i + l) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_u[0][0][l] = (double)A->d2[((size_t)m0_0[l])];
    uint32_t m0_1[1];
    for (int l = 0; l < 1; l++) m0_1[l] = (uint32_t)A->m0[(i + l) * 2 + 1];
    for (int l = 0; l < 1; l++) p0_u[1][0][l] = (double)A->d2[((size_t)m0_1[l])];
    FL_ALIGN int64_t p0_check_first1[1][1][1];
    for (int l = 0; l < 1; l++) { /* lanes 1: faulty (checked) */
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
        check_t1_ = o1[0][0];
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
        check_t5_ = o0[check_t4_][0];
        if ((!fl_isfinite_double(check_t5_))) {
            if ((check_excused1_ < 2)) {
                check_excused1_ = 2;
            }
        }
        check_t6_ = p0_u[1][0][0];
        if ((!fl_isfinite_double(check_t6_))) {
            if ((check_excused1_ < 2)) {
                check_excused1_ = 2;
            }
        }
        check_t7_ = p0_u[0][0][0];
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
        check_t11_ = o0[0][0];
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
            v_check_first1_0_0 = fl_min_int64_t(v_check_first1_0_0, fl_add_int64_t(fl_mul_int64_t(o3[0][0], 65536), check_site1_));
        }
        p0_check_first1[0][0][0] = v_check_first1_0_0;
    } /* end lanes 1: faulty (checked) */
    for (int l = 0; l < 1; l++) acc0_check_first1[0][(i & 15) + l] = fl_min_int64_t(acc0_check_first1[0][(i & 15) + l], p0_check_first1[0][0][l]);
    }
}

static __attribute__((noinline)) void fl_loop_faulty__checked__run(const fl_loop_faulty__checked__args *restrict A, int64_t i, const int64_t end, int64_t (*restrict acc0_check_first1)[16]) {
    for (; i < end; i++) fl_loop_faulty__checked__run_1(A, i, acc0_check_first1);
}

void fl_loop_faulty__checked_(const int64_t *S) {
    const fl_loop_faulty__checked__args *const A = (const fl_loop_faulty__checked__args *)S;
    const int64_t n = A->n;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < n; b += 1024) {
        FL_ALIGN int64_t acc0_check_first1[1][16];
        for (int c = 0; c < 1; c++) for (int l = 0; l < 16; l++) acc0_check_first1[c][l] = INT64_MAX;
        fl_loop_faulty__checked__run(A, b, b + 1024 < n ? b + 1024 : n, acc0_check_first1);
        for (int c = 0; c < 1; c++) {
            for (int h = 8; h > 0; h /= 2) for (int l = 0; l < h; l++) acc0_check_first1[c][l] = fl_min_int64_t(acc0_check_first1[c][l], acc0_check_first1[c][l + h]);
            A->part0_check_first1[(b / 1024) * 1 + c] = acc0_check_first1[c][0];
        }
    }
    for (int c = 0; c < 1; c++) {
        int64_t total = INT64_MAX;
        for (int64_t p = 0; p < (n + 1023) / 1024; p++) total = fl_min_int64_t(total, A->part0_check_first1[p * 1 + c]);
        A->d4[c] = (int64_t)(fl_min_int64_t(A->d4[c], total));
    }
}
