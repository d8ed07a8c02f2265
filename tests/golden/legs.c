/* spread: block_colour */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    int32_t * m0;
    double * d1;
    int64_t n_colours;
    int64_t * colour_off;
    int32_t * blocks;
    int64_t * block_off;
} fl_loop_spread_args;

AI void fl_loop_spread_run_4(const fl_loop_spread_args *restrict A, const int64_t i) {
    { /* spread */
    FL_ALIGN double p0_x[66][2][4];
    for (int g = 0; g < 66; g++) {
    uint32_t m0_g[4];
    for (int l = 0; l < 4; l++) m0_g[l] = (uint32_t)A->m0[(i + l) * 66 + g];
    fl_load2_float64_float64_4(p0_x[g] + 0, A->d0 + 0, 2, m0_g);
    }
    FL_ALIGN double p0_y[66][1][4];
    for (int g = 0; g < 66; g++) for (int c = 0; c < 1; c++) for (int l = 0; l < 4; l++) p0_y[g][c][l] = 0;
    int64_t c_;
    FL_ALIGN double total_[4];
    #pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: spread */
        total_[l] = 0.0;
    } /* end lanes 4: spread */
    for (int64_t for_c_t = 0, for_c_te = 66; for_c_t < for_c_te; for_c_t += 1) {
        c_ = for_c_t;
        #pragma omp simd simdlen(4)
        for (int l = 0; l < 4; l++) { /* lanes 4: spread */
            total_[l] = (total_[l] + (p0_x[c_][0][l] * p0_x[c_][1][l]));
        } /* end lanes 4: spread */
    }
    for (int64_t for_c_t = 0, for_c_te = 66; for_c_t < for_c_te; for_c_t += 1) {
        c_ = for_c_t;
        #pragma omp simd simdlen(4)
        for (int l = 0; l < 4; l++) { /* lanes 4: spread */
            p0_y[c_][0][l] += (total_[l] * p0_x[c_][1][l]);
        } /* end lanes 4: spread */
    }
    for (int l = 0; l < 4; l++) {
    for (int g = 0; g < 66; g++) { const uint32_t t = (uint32_t)A->m0[(i + l) * 66 + g];
        *((A->d1 + (size_t)t * 1)) += (double)p0_y[g][0][l];
    }
    }
    }
}

AI void fl_loop_spread_run_1(const fl_loop_spread_args *restrict A, const int64_t i) {
    { /* spread */
    FL_ALIGN double p0_x[66][2][1];
    for (int g = 0; g < 66; g++) {
    uint32_t m0_g[1];
    for (int l = 0; l < 1; l++) m0_g[l] = (uint32_t)A->m0[(i + l) * 66 + g];
    for (int l = 0; l < 1; l++) p0_x[g][0][l] = (double)A->d0[((size_t)m0_g[l]) * 2 + 0];
    for (int l = 0; l < 1; l++) p0_x[g][1][l] = (double)A->d0[((size_t)m0_g[l]) * 2 + 1];
    }
    FL_ALIGN double p0_y[66][1][1];
    for (int g = 0; g < 66; g++) for (int c = 0; c < 1; c++) for (int l = 0; l < 1; l++) p0_y[g][c][l] = 0;
    for (int l = 0; l < 1; l++) { /* lanes 1: spread */
        double total_;
        int64_t c_;
        total_ = 0.0;
        for (int64_t for_c_t = 0, for_c_te = 66; for_c_t < for_c_te; for_c_t += 1) {
            c_ = for_c_t;
            total_ = (total_ + (p0_x[c_][0][0] * p0_x[c_][1][0]));
        }
        for (int64_t for_c_t = 0, for_c_te = 66; for_c_t < for_c_te; for_c_t += 1) {
            c_ = for_c_t;
            p0_y[c_][0][0] += (total_ * p0_x[c_][1][0]);
        }
    } /* end lanes 1: spread */
    for (int l = 0; l < 1; l++) {
    for (int g = 0; g < 66; g++) { const uint32_t t = (uint32_t)A->m0[(i + l) * 66 + g];
        A->d1[((size_t)t)] += (double)p0_y[g][0][l];
    }
    }
    }
}

static __attribute__((noinline)) void fl_loop_spread_run(const fl_loop_spread_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 4 <= end; i += 4) fl_loop_spread_run_4(A, i);
    for (; i < end; i++) fl_loop_spread_run_1(A, i);
}

void fl_loop_spread(const int64_t *S) {
    const fl_loop_spread_args *const A = (const fl_loop_spread_args *)S;
    for (int64_t colour = 0; colour < A->n_colours; colour++) {
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
        for (int64_t k = A->colour_off[colour]; k < A->colour_off[colour + 1]; k++) {
            const int64_t block = A->blocks[k];
            fl_loop_spread_run(A, A->block_off[block], A->block_off[block + 1]);
        }
    }
}
