/* spmv: direct */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int32_t * r0_start;
    uint8_t * r0_length;
    int32_t * r0_index;
    int64_t r0_rows;
    double * d1;
    double * d2;
} fl_loop_spmv_args;

AI void fl_loop_spmv_run_8(const fl_loop_spmv_args *restrict A, const int64_t i) {
    FL_ALIGN double o2[1][8];
    { /* spmv */
    const int64_t row0_start = A->r0_start[i / 8] + i % 8;
    const int64_t row0_stride = 8;
    FL_ALIGN int32_t row0_length[8];
    for (int l = 0; l < 8; l++) row0_length[l] = A->r0_length[i + l];
    fl_ahead(A->r0_index + row0_start + 512, row0_length[0] * 8 * 4);
    fl_ahead(A->d0 + (row0_start + 256) * 1, row0_length[0] * 8 * 8);
    FL_ALIGN double total_[8];
    FL_ALIGN double v_y_0_0[8];
    #pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: spmv */
        total_[l] = 0.0;
    } /* end lanes 8: spmv */
    FL_ALIGN int for_j_e1[8];
    #pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: spmv */
        for_j_e1[l] = (int)(row0_length[l]);
    } /* end lanes 8: spmv */
    int for_j_t1 = 0, for_j_t1_least = for_j_e1[0], for_j_t1_most = for_j_e1[0];
    for (int l = 1; l < 8; l++) {
        for_j_t1_least = for_j_e1[l] < for_j_t1_least ? for_j_e1[l] : for_j_t1_least;
        for_j_t1_most = for_j_e1[l] > for_j_t1_most ? for_j_e1[l] : for_j_t1_most;
    }
    for (; for_j_t1 < for_j_t1_least; for_j_t1 += 1) {
        #pragma omp simd simdlen(8)
        for (int l = 0; l < 8; l++) { /* lanes 8: spmv */
            int64_t j_;
            j_ = for_j_t1;
            total_[l] = (total_[l] + (A->d0[((row0_start + l + (j_) * row0_stride))] * A->d1[((size_t)A->r0_index[(row0_start + l + (j_) * row0_stride)])]));
        } /* end lanes 8: spmv */
    }
    for (; for_j_t1 < for_j_t1_most; for_j_t1 += 1) {
        #pragma omp simd simdlen(8)
        for (int l = 0; l < 8; l++) if (for_j_t1 < for_j_e1[l]) { /* lanes 8: spmv */
            int64_t j_;
            j_ = for_j_t1;
            total_[l] = (total_[l] + (A->d0[((row0_start + l + (j_) * row0_stride))] * A->d1[((size_t)A->r0_index[(row0_start + l + (j_) * row0_stride)])]));
        } /* end lanes 8: spmv */
    }
    #pragma omp simd simdlen(8)
    for (int l = 0; l < 8; l++) { /* lanes 8: spmv */
        v_y_0_0[l] = total_[l];
        o2[0][l] = v_y_0_0[l];
    } /* end lanes 8: spmv */
    }
    fl_storeseq1_float64_float64_8(A->d2 + 0, 1, i, o2 + 0);
}

AI void fl_loop_spmv_run_1(const fl_loop_spmv_args *restrict A, const int64_t i) {
    FL_ALIGN double o2[1][1];
    { /* spmv */
    const int64_t row0_start = A->r0_start[i / 8] + i % 8;
    const int64_t row0_stride = 8;
    const int64_t row0_length = A->r0_length[i];
    for (int l = 0; l < 1; l++) { /* lanes 1: spmv */
        double total_;
        int64_t j_;
        double v_y_0_0;
        total_ = 0.0;
        for (int64_t for_j_t = 0, for_j_te = row0_length; for_j_t < for_j_te; for_j_t += 1) {
            j_ = for_j_t;
            total_ = (total_ + (A->d0[((row0_start + (j_) * row0_stride))] * A->d1[((size_t)A->r0_index[(row0_start + (j_) * row0_stride)])]));
        }
        v_y_0_0 = total_;
        o2[0][0] = v_y_0_0;
    } /* end lanes 1: spmv */
    }
    for (int l = 0; l < 1; l++) A->d2[((size_t)(i + l))] = (double)o2[0][l];
}

static __attribute__((noinline)) void fl_loop_spmv_run(const fl_loop_spmv_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 8 <= end; i += 8) fl_loop_spmv_run_8(A, i);
    for (; i < end; i++) fl_loop_spmv_run_1(A, i);
}

void fl_loop_spmv(const int64_t *S) {
    const fl_loop_spmv_args *const A = (const fl_loop_spmv_args *)S;
    const int64_t n = A->n;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < n; b += 1024) {
        fl_loop_spmv_run(A, b, b + 1024 < n ? b + 1024 : n);
    }
}
