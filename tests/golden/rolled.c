static const double fl_table_0b4f3d47a368591a[66][2] = {{0.0, (-1.0)},
{0.5, (-1.0)},
{1.0, (-1.0)},
{1.5, (-1.0)},
{2.0, (-1.0)},
{2.5, (-1.0)},
{3.0, (-1.0)},
{3.5, (-1.0)},
{4.0, (-1.0)},
{4.5, (-1.0)},
{5.0, (-1.0)},
{5.5, (-1.0)},
{6.0, (-1.0)},
{6.5, (-1.0)},
{7.0, (-1.0)},
{7.5, (-1.0)},
{8.0, (-1.0)},
{8.5, (-1.0)},
{9.0, (-1.0)},
{9.5, (-1.0)},
{10.0, (-1.0)},
{10.5, (-1.0)},
{11.0, (-1.0)},
{11.5, (-1.0)},
{12.0, (-1.0)},
{12.5, (-1.0)},
{13.0, (-1.0)},
{13.5, (-1.0)},
{14.0, (-1.0)},
{14.5, (-1.0)},
{15.0, (-1.0)},
{15.5, (-1.0)},
{16.0, (-1.0)},
{16.5, (-1.0)},
{17.0, (-1.0)},
{17.5, (-1.0)},
{18.0, (-1.0)},
{18.5, (-1.0)},
{19.0, (-1.0)},
{19.5, (-1.0)},
{20.0, (-1.0)},
{20.5, (-1.0)},
{21.0, (-1.0)},
{21.5, (-1.0)},
{22.0, (-1.0)},
{22.5, (-1.0)},
{23.0, (-1.0)},
{23.5, (-1.0)},
{24.0, (-1.0)},
{24.5, (-1.0)},
{25.0, (-1.0)},
{25.5, (-1.0)},
{26.0, (-1.0)},
{26.5, (-1.0)},
{27.0, (-1.0)},
{27.5, (-1.0)},
{28.0, (-1.0)},
{28.5, (-1.0)},
{29.0, (-1.0)},
{29.5, (-1.0)},
{30.0, (-1.0)},
{30.5, (-1.0)},
{31.0, (-1.0)},
{31.5, (-1.0)},
{32.0, (-1.0)},
{32.5, (-1.0)}}; /* table_2 */
static const double fl_table_9efefc570dd1ba45[66] = {1.0, 0.5, 0.3333333333333333, 0.25, 0.2, 0.16666666666666666, 0.14285714285714285, 0.125,
0.1111111111111111, 0.1, 0.09090909090909091, 0.08333333333333333, 0.07692307692307693, 0.07142857142857142, 0.06666666666666667, 0.0625,
0.058823529411764705, 0.05555555555555555, 0.05263157894736842, 0.05, 0.047619047619047616, 0.045454545454545456, 0.043478260869565216, 0.041666666666666664,
0.04, 0.038461538461538464, 0.037037037037037035, 0.03571428571428571, 0.034482758620689655, 0.03333333333333333, 0.03225806451612903, 0.03125,
0.030303030303030304, 0.029411764705882353, 0.02857142857142857, 0.027777777777777776, 0.02702702702702703, 0.02631578947368421, 0.02564102564102564, 0.025,
0.024390243902439025, 0.023809523809523808, 0.023255813953488372, 0.022727272727272728, 0.022222222222222223, 0.021739130434782608, 0.02127659574468085, 0.020833333333333332,
0.02040816326530612, 0.02, 0.0196078431372549, 0.019230769230769232, 0.018867924528301886, 0.018518518518518517, 0.01818181818181818, 0.017857142857142856,
0.017543859649122806, 0.017241379310344827, 0.01694915254237288, 0.016666666666666666, 0.01639344262295082, 0.016129032258064516, 0.015873015873015872, 0.015625,
0.015384615384615385, 0.015151515151515152}; /* weight_2 */
/* moments: direct */
typedef struct {
    int64_t n;
    int64_t threads;
    double * d0;
    double * d1;
} fl_loop_moments_args;

AI void fl_loop_moments_run_4(const fl_loop_moments_args *restrict A, const int64_t i) {
    FL_ALIGN double o0[2][4];
    FL_ALIGN double o1[1][4];
    { /* moments */
    fl_loadseq2_float64_float64_4(o0 + 0, A->d0 + 0, 2, i);
    int64_t kept_i_;
    int64_t q_;
    int64_t i_;
    int64_t j_;
    FL_ALIGN double total_[4];
    FL_ALIGN double kept_[66][4];
    FL_ALIGN double v_y_0_0[4];
    for (int64_t for_kept_i_t = 0, for_kept_i_te = 66; for_kept_i_t < for_kept_i_te; for_kept_i_t += 1) {
        kept_i_ = for_kept_i_t;
        #pragma omp simd simdlen(4)
        for (int l = 0; l < 4; l++) { /* lanes 4: moments */
            kept_[kept_i_][l] = 0.0;
        } /* end lanes 4: moments */
    }
    for (int64_t for_q_t = 0, for_q_te = 66; for_q_t < for_q_te; for_q_t += 1) {
        q_ = for_q_t;
        #pragma omp simd simdlen(4)
        for (int l = 0; l < 4; l++) { /* lanes 4: moments */
            kept_[q_][l] = (((fl_table_0b4f3d47a368591a[q_][0] * o0[0][l]) + (fl_table_0b4f3d47a368591a[q_][1] * o0[1][l])) * fl_table_9efefc570dd1ba45[q_]);
        } /* end lanes 4: moments */
    }
    #pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: moments */
        total_[l] = 0.0;
    } /* end lanes 4: moments */
    for (int64_t for_i_t = 0, for_i_te = 66; for_i_t < for_i_te; for_i_t += 1) {
        i_ = for_i_t;
        for (int64_t for_j_t = i_, for_j_te = 66; for_j_t < for_j_te; for_j_t += 1) {
            j_ = for_j_t;
            #pragma omp simd simdlen(4)
            for (int l = 0; l < 4; l++) { /* lanes 4: moments */
                total_[l] = (total_[l] + (kept_[i_][l] * kept_[j_][l]));
            } /* end lanes 4: moments */
        }
    }
    #pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: moments */
        v_y_0_0[l] = total_[l];
    } /* end lanes 4: moments */
    #pragma omp simd simdlen(4)
    for (int l = 0; l < 4; l++) { /* lanes 4: moments */
        o1[0][l] = v_y_0_0[l];
    } /* end lanes 4: moments */
    }
    fl_storeseq1_float64_float64_4(A->d1 + 0, 1, i, o1 + 0);
}

AI void fl_loop_moments_run_1(const fl_loop_moments_args *restrict A, const int64_t i) {
    FL_ALIGN double o0[2][1];
    FL_ALIGN double o1[1][1];
    { /* moments */
    for (int l = 0; l < 1; l++) o0[0][l] = (double)A->d0[((i + l)) * 2 + 0];
    for (int l = 0; l < 1; l++) o0[1][l] = (double)A->d0[((i + l)) * 2 + 1];
    for (int l = 0; l < 1; l++) { /* lanes 1: moments */
        int64_t kept_i_;
        int64_t q_;
        double total_;
        int64_t i_;
        int64_t j_;
        double kept_[66];
        double v_y_0_0;
        for (int64_t for_kept_i_t = 0, for_kept_i_te = 66; for_kept_i_t < for_kept_i_te; for_kept_i_t += 1) {
            kept_i_ = for_kept_i_t;
            kept_[kept_i_] = 0.0;
        }
        for (int64_t for_q_t = 0, for_q_te = 66; for_q_t < for_q_te; for_q_t += 1) {
            q_ = for_q_t;
            kept_[q_] = (((fl_table_0b4f3d47a368591a[q_][0] * o0[0][0]) + (fl_table_0b4f3d47a368591a[q_][1] * o0[1][0])) * fl_table_9efefc570dd1ba45[q_]);
        }
        total_ = 0.0;
        for (int64_t for_i_t = 0, for_i_te = 66; for_i_t < for_i_te; for_i_t += 1) {
            i_ = for_i_t;
            for (int64_t for_j_t = i_, for_j_te = 66; for_j_t < for_j_te; for_j_t += 1) {
                j_ = for_j_t;
                total_ = (total_ + (kept_[i_] * kept_[j_]));
            }
        }
        v_y_0_0 = total_;
        o1[0][0] = v_y_0_0;
    } /* end lanes 1: moments */
    }
    for (int l = 0; l < 1; l++) A->d1[((size_t)(i + l))] = (double)o1[0][l];
}

static __attribute__((noinline)) void fl_loop_moments_run(const fl_loop_moments_args *restrict A, int64_t i, const int64_t end) {
    for (; i + 4 <= end; i += 4) fl_loop_moments_run_4(A, i);
    for (; i < end; i++) fl_loop_moments_run_1(A, i);
}

void fl_loop_moments(const int64_t *S) {
    const fl_loop_moments_args *const A = (const fl_loop_moments_args *)S;
    const int64_t n = A->n;
#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)
    for (int64_t b = 0; b < n; b += 1024) {
        fl_loop_moments_run(A, b, b + 1024 < n ? b + 1024 : n);
    }
}
