#define REAL double
#define FL_BAD(pivot) ((pivot) == 0 || (pivot) - (pivot) != 0)
#define FL_LOST(pivot, whole) (FL_BAD(pivot) || ((pivot) < 0 ? -(pivot) : (pivot)) <= (REAL)4.440892098500626e-16 * rows * ((whole) < 0 ? -(whole) : (whole)))
#define AHEAD 4
#define RHS 1
#define BORDER 0
#define BLOCK 64
#define LOCAL 0
#define ROWS rows
#define LOW(i) (i > 0 ? a[c_at + i * c_row] : (REAL)0)
#define MAIN(i) ((b[c_at + i * c_row]) * (i == 0 ? doubled : (REAL)1))
#define HIGH(i) (i < rows - 1 ? c[c_at + i * c_row] : (REAL)0)

extern "C" __global__ void __launch_bounds__(64) fl_thomas(
    const double *y,
    double *x,
    const double *__restrict__ a,
    const double *__restrict__ b,
    const double *__restrict__ c,
    const double *__restrict__ mass,
    const double *__restrict__ inner_shift,
    const double *__restrict__ outer_shift,
    double *__restrict__ work,
    int32_t *__restrict__ status,
    const int64_t rows,
    const int64_t inner,
    const int64_t outer,
    const int64_t y_first,
    const int64_t x_first,
    const int64_t row_step,
    const int64_t inner_step,
    const int64_t outer_step,
    const int64_t rhs_step,
    const int64_t c_row,
    const int64_t c_inner,
    const int64_t c_outer,
    const int64_t pinned,
    const double scale)
{
    const int64_t systems = inner * outer;
    const int64_t number = FL_ITEM;
    const int there = number < systems;
    const int64_t q = there ? number : systems - 1;
    const int64_t o = 0, s = q - o * inner;
    const int64_t y_at = y_first + o * outer_step + s * inner_step;
    const int64_t x_at = x_first + o * outer_step + s * inner_step;
    const int64_t c_at = o * c_outer + s * c_inner;
    const REAL factor = (REAL)scale, doubled = q == pinned ? (REAL)2 : (REAL)1;
    int bad = 0;
/* Body of Thomas's algorithm, a work item a system; the equations are in kernels_thomas.py.
 *
 * An item has AHEAD rows in registers (f) and has asked for the next ones (g). RHS right-hand sides are eliminated
 * together. With BORDER the last row of a periodic system is kept apart. With LOCAL all systems share their matrix: one
 * item keeps for its group what depends on the matrix alone, but for the pinned system, whose matrix is another. */
#if LOCAL
#define KEPT(k) (q == pinned ? work[k] : held[k])
#define KEEP(k, value) if (q == pinned) { if (there) work[k] = value; } else if (writer) held[k] = value;
    const int writer = FL_MEMBER == (FL_GROUP * BLOCK == pinned);
#else
#define KEPT(k) work[(k) * systems + q]
#define KEEP(k, value) if (there) KEPT(k) = value;
#endif
    const int64_t m = rows - BORDER;
    REAL fa[AHEAD], fb[AHEAD], fc[AHEAD], fy[RHS][AHEAD];
    REAL ga[AHEAD], gb[AHEAD], gc[AHEAD], gy[RHS][AHEAD];
    REAL cp = 0, yp[RHS];
#if BORDER
    const int64_t n = rows - 1;
    REAL left = -1, far, corner, low, ends[RHS];
    { const int64_t i = n; low = LOW(i); corner = MAIN(i); far = HIGH(i); }
    const REAL whole = doubled == 1 ? corner : (REAL)0;
    FL_UNROLL for (int r = 0; r < RHS; r++) ends[r] = factor * y[y_at + n * row_step + r * rhs_step];
#endif
    FL_UNROLL for (int r = 0; r < RHS; r++) yp[r] = 0;
    FL_UNROLL for (int j = 0; j < AHEAD; j++) {
        const int64_t i = j < m ? j : m - 1;
        ga[j] = LOW(i); gb[j] = MAIN(i); gc[j] = HIGH(i);
        FL_UNROLL for (int r = 0; r < RHS; r++) gy[r][j] = y[y_at + i * row_step + r * rhs_step];
    }
    for (int64_t at = 0; at < m; at += AHEAD) {
        FL_UNROLL for (int j = 0; j < AHEAD; j++) {
            fa[j] = ga[j]; fb[j] = gb[j]; fc[j] = gc[j];
            FL_UNROLL for (int r = 0; r < RHS; r++) fy[r][j] = gy[r][j];
        }
        FL_UNROLL for (int j = 0; j < AHEAD; j++) {
            const int64_t i = at + AHEAD + j < m ? at + AHEAD + j : m - 1;
            ga[j] = LOW(i); gb[j] = MAIN(i); gc[j] = HIGH(i);
            FL_UNROLL for (int r = 0; r < RHS; r++) gy[r][j] = y[y_at + i * row_step + r * rhs_step];
        }
        FL_UNROLL for (int j = 0; j < AHEAD; j++) {
            const int64_t i = at + j;
            if (i < m) {
                const REAL pivot = fb[j] - fa[j] * cp, inverse = 1 / pivot;
                bad |= FL_BAD(pivot);
                cp = fc[j] * inverse;
                KEEP(i, cp)
                FL_UNROLL for (int r = 0; r < RHS; r++) {
                    yp[r] = (factor * fy[r][j] - fa[j] * yp[r]) * inverse;
                    if (there) x[x_at + i * row_step + r * rhs_step] = yp[r];
                }
#if BORDER
                left = -fa[j] * left * inverse;
                KEEP(ROWS + i, left)
                if (i == m - 1) {
                    far += low;
                    corner -= far * (left + cp);
                } else {
                    corner -= far * left;
                }
                FL_UNROLL for (int r = 0; r < RHS; r++) ends[r] -= far * yp[r];
                far = -far * cp;
#endif
            }
        }
    }
#if BORDER
    bad |= FL_LOST(corner, whole);
    FL_UNROLL for (int r = 0; r < RHS; r++) {
        ends[r] /= corner;
        if (there) x[x_at + n * row_step + r * rhs_step] = ends[r];
        yp[r] = ends[r];
    }
#endif
#if LOCAL
    FL_BARRIER();
#endif
    /* Back from the row before the last; yp is the unknown behind it. */
    FL_UNROLL for (int r = 0; r < RHS; r++) bad |= yp[r] - yp[r] != 0;
    const int64_t top = rows - 2;
    FL_UNROLL for (int j = 0; j < AHEAD; j++) {
        const int64_t i = top - j > 0 ? top - j : 0;
        gc[j] = KEPT(i);
#if BORDER
        ga[j] = KEPT(ROWS + i);
#endif
        FL_UNROLL for (int r = 0; r < RHS; r++) gy[r][j] = x[x_at + i * row_step + r * rhs_step];
    }
    for (int64_t at = top; at >= 0; at -= AHEAD) {
        FL_UNROLL for (int j = 0; j < AHEAD; j++) {
            fc[j] = gc[j]; fa[j] = ga[j];
            FL_UNROLL for (int r = 0; r < RHS; r++) fy[r][j] = gy[r][j];
        }
        FL_UNROLL for (int j = 0; j < AHEAD; j++) {
            const int64_t i = at - AHEAD - j > 0 ? at - AHEAD - j : 0;
            gc[j] = KEPT(i);
#if BORDER
            ga[j] = KEPT(ROWS + i);
#endif
            FL_UNROLL for (int r = 0; r < RHS; r++) gy[r][j] = x[x_at + i * row_step + r * rhs_step];
        }
        FL_UNROLL for (int j = 0; j < AHEAD; j++) {
            const int64_t i = at - j;
            if (i >= 0) {
                FL_UNROLL for (int r = 0; r < RHS; r++) {
#if BORDER
                    yp[r] = fy[r][j] - fc[j] * yp[r] - fa[j] * ends[r];
#else
                    yp[r] = fy[r][j] - fc[j] * yp[r];
#endif
                    if (there) x[x_at + i * row_step + r * rhs_step] = yp[r];
                }
            }
        }
    }
    if (bad && there) FL_ATOMIC_MAX(status, (int)(q < INT32_MAX - 1 ? q + 1 : (int64_t)INT32_MAX));
}
