/* spmv: direct */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int32_t * r0_start;
    uint8_t * r0_length;
    int32_t * r0_index;
    int64_t r0_rows;
    int64_t * r0_table;
    double * d1;
    double * d2;
} fl_loop_spmv_args;

AI void fl_loop_spmv_run_1(const fl_loop_spmv_args *restrict A, const int64_t i) {
    FL_ALIGN double o2[1][1];
    { /* spmv */
    const int64_t row0_start = A->r0_start[i];
    const int64_t row0_stride = A->r0_table[i / 4 * 3 + 2];
    const int64_t row0_inverse = A->r0_table[i / 4 * 3];
    const int row0_chunk = (int)A->r0_table[i / 4 * 3 + 1];
    const int64_t row0_length = A->r0_length[i];
    for (int l = 0; l < 1; l++) { /* lanes 1: spmv */
        double total_;
        int64_t j_;
        double v_y_0_0;
        total_ = 0.0;
        for (int64_t for_j_t = 0, for_j_te = row0_length; for_j_t < for_j_te; for_j_t += 1) {
            j_ = for_j_t;
            total_ = (total_ + (A->d0[(fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride))] * A->d1[((size_t)A->r0_index[fl_in_chunks(row0_start, j_, row0_inverse, row0_chunk, row0_stride)])]));
        }
        v_y_0_0 = total_;
        o2[0][0] = v_y_0_0;
    } /* end lanes 1: spmv */
    }
    for (int l = 0; l < 1; l++) A->d2[((size_t)(i + l))] = (double)o2[0][l];
}

static __attribute__((noinline)) void fl_loop_spmv_run(const fl_loop_spmv_args *restrict A, int64_t i, const int64_t end) {
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
