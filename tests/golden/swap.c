/* swap: grid */
typedef struct {
    int64_t n;
    int64_t threads;
    float * d0;
    int64_t s0;
    double c0_rate;
    int64_t n0;
    int64_t n1;
    int64_t n2;
} fl_loop_swap_args;

AI void fl_loop_swap_row(const fl_loop_swap_args *restrict A, const int64_t begin, const int64_t end, const int wrap, const int64_t row0, const int64_t row1) {
    const float k_rate = (float)A->c0_rate;
#pragma omp simd simdlen(8)
    for (int64_t x = begin; x < end; x++) { /* lanes 8: swap */
        float here_;
        float v_f_0_0 = A->d0[(0) * A->s0 + (row0 + (wrap ? fl_wrap(x + 1, A->n2) : x + 1))];
        float v_f_1_1 = A->d0[(1) * A->s0 + (row1 + x)];
        here_ = v_f_0_0;
        v_f_0_0 = (k_rate * v_f_1_1);
        v_f_1_1 = here_;
        A->d0[(0) * A->s0 + (row0 + (wrap ? fl_wrap(x + 1, A->n2) : x + 1))] = v_f_0_0;
        A->d0[(1) * A->s0 + (row1 + x)] = v_f_1_1;
    } /* end lanes 8: swap */
}

void fl_loop_swap(const int64_t *S) {
    const fl_loop_swap_args *const A = (const fl_loop_swap_args *)S;
    const int64_t rows = A->n0 * A->n1, nx = A->n2;
    const int64_t low = nx < 1 ? nx : 1;
    const int64_t high = nx - 1 > low ? nx - 1 : low;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t r = 0; r < rows; r++) {
        const int64_t z = r / A->n1, y = r % A->n1;
        const int64_t row0 = ((z + 0) * (A->n1 + 0) + (y + 0)) * (A->n2 + 0) + 0;
        const int64_t row1 = ((z + 0) * (A->n1 + 0) + (fl_wrap(y + -1, A->n1) + 0)) * (A->n2 + 0) + 0;
        fl_loop_swap_row(A, 0, low, 1, row0, row1);
        fl_loop_swap_row(A, low, high, 0, row0, row1);
        fl_loop_swap_row(A, high, nx, 1, row0, row1);
    }
}
