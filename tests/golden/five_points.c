/* five_points: grid */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    double * d1;
    int32_t * z1;
    double c0_h;
    int64_t n0;
    int64_t n1;
    int64_t n2;
} fl_loop_five_points_args;

AI void fl_loop_five_points_row(const fl_loop_five_points_args *restrict A, const int64_t begin, const int64_t end, const int wrap, const int64_t row0, const int64_t row1, const int64_t row2) {
    const double k_h = (double)A->c0_h;
#pragma omp simd simdlen(8)
    for (int64_t x = begin; x < end; x++) { /* lanes 8: five_points */
        double v_v_0_0;
        v_v_0_0 = (A->d0[(row0 + x)] + (k_h * ((((A->d0[(row0 + (wrap ? fl_wrap(x + -1, A->n2) : x + -1))] + A->d0[(row0 + (wrap ? fl_wrap(x + 1, A->n2) : x + 1))]) + A->d0[(row1 + x)]) + A->d0[(row2 + x)]) - (4.0 * A->d0[(row0 + x)]))));
        A->d1[(row0 + x)] = v_v_0_0;
    } /* end lanes 8: five_points */
}

void fl_loop_five_points(const int64_t *S) {
    const fl_loop_five_points_args *const A = (const fl_loop_five_points_args *)S;
    const int64_t rows = A->n0 * A->n1, nx = A->n2;
    const int64_t low = nx < 1 ? nx : 1;
    const int64_t high = nx - 1 > low ? nx - 1 : low;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t r = 0; r < rows; r++) {
        const int64_t z = r / A->n1, y = r % A->n1;
        const int64_t row0 = ((z + 0) * (A->n1 + 2) + (y + 1)) * (A->n2 + 0) + 0;
        const int64_t row1 = ((z + 0) * (A->n1 + 2) + (y + -1 + 1)) * (A->n2 + 0) + 0;
        const int64_t row2 = ((z + 0) * (A->n1 + 2) + (y + 1 + 1)) * (A->n2 + 0) + 0;
        fl_loop_five_points_row(A, 0, low, 1, row0, row1, row2);
        fl_loop_five_points_row(A, low, high, 0, row0, row1, row2);
        fl_loop_five_points_row(A, high, nx, 1, row0, row1, row2);
    }
}
