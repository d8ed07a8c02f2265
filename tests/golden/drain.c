/* drain: grid */
typedef struct {
    int64_t n;
    int64_t threads;
    float * d0;
    int64_t s0;
    double * d1;
    double * d2;
    double * part0_total;
    int32_t * list;
    int64_t n0;
    int64_t n1;
    int64_t n2;
} fl_loop_drain_args;

AI void fl_loop_drain_list(const fl_loop_drain_args *restrict A, const int64_t begin, const int64_t end, double *restrict acc_total) {
    for (int64_t first = begin; first < end; first += 64) {
    const int count = end - first < 64 ? (int)(end - first) : 64;
    int32_t at0[64], at1[64], at2[64];
    for (int k = 0; k < count; k++) {
        const uint32_t e = (uint32_t)A->list[first + k], row = e / (uint32_t)A->n2;
        at0[k] = (int32_t)(row / (uint32_t)A->n1);
        at1[k] = (int32_t)(row % (uint32_t)A->n1);
        at2[k] = (int32_t)(e % (uint32_t)A->n2);
    }
    double t_total_0 = acc_total[0];
#pragma omp simd simdlen(8) reduction(+:t_total_0)
    for (int k = 0; k < count; k++) { /* lanes 8: drain */
        double g_total_0;
        const int64_t x = at2[k], y = at1[k], z = at0[k];
        const int64_t row0 = ((z + 0) * (A->n1 + 0) + (y + 0)) * (A->n2 + 0) + 0;
        const int64_t row1 = ((z + 0) * (A->n1 + 0) + (fl_wrap(y + -1, A->n1) + 0)) * (A->n2 + 0) + 0;
        double v_v_0_0 = A->d1[(row0 + x)];
        double v_total_0_0;
        v_v_0_0 = (((double)A->d0[(0) * A->s0 + (row0 + fl_wrap(x + 1, A->n2))]) - ((double)A->d0[(1) * A->s0 + (row1 + x)]));
        v_total_0_0 = v_v_0_0;
        A->d1[(row0 + x)] = v_v_0_0;
        g_total_0 = v_total_0_0;
        t_total_0 = t_total_0 + g_total_0;
    } /* end lanes 8: drain */
    acc_total[0] = t_total_0;
    }
}

void fl_loop_drain(const int64_t *S) {
    const fl_loop_drain_args *const A = (const fl_loop_drain_args *)S;
    const int64_t first = 0, n = A->list[A->n];
    const int64_t chunks = (n - first + 1023) / 1024;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < chunks; b++) {
        const int64_t begin = first + b * 1024, end = begin + 1024 < n ? begin + 1024 : n;
        double acc_total[1] = {0};
        fl_loop_drain_list(A, begin, end, acc_total);
        for (int c = 0; c < 1; c++) A->part0_total[b * 1 + c] = acc_total[c];
    }
    for (int c = 0; c < 1; c++) {
        double total = 0;
        for (int64_t p = 0; p < chunks; p++) total = total + A->part0_total[p * 1 + c];
        A->d2[c] = (double)(A->d2[c] + total);
    }
}
