#define REAL double
#define FL_BAD(pivot) ((pivot) == 0 || (pivot) - (pivot) != 0)
#define FL_LOST(pivot, whole) (FL_BAD(pivot) || ((pivot) < 0 ? -(pivot) : (pivot)) <= (REAL)4.440892098500626e-16 * rows * ((whole) < 0 ? -(whole) : (whole)))

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void fl_thomas(
    __global const double *y,
    __global double *x,
    __global const double *restrict a,
    __global const double *restrict b,
    __global const double *restrict c,
    __global const double *restrict mass,
    __global const double *restrict inner_shift,
    __global const double *restrict outer_shift,
    __global double *restrict work,
    __global int32_t *restrict status,
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

    const int64_t m = rows - 0;
    REAL fa[4], fb[4], fc[4], fy[1][4];
    REAL ga[4], gb[4], gc[4], gy[1][4];
    REAL cp = 0, yp[1];

    FL_UNROLL for (int r = 0; r < 1; r++) yp[r] = 0;
    FL_UNROLL for (int j = 0; j < 4; j++) {
        const int64_t i = j < m ? j : m - 1;
        ga[j] = (i > 0 ? a[c_at + i * c_row] : (REAL)0); gb[j] = ((b[c_at + i * c_row]) * (i == 0 ? doubled : (REAL)1)); gc[j] = (i < rows - 1 ? c[c_at + i * c_row] : (REAL)0);
        FL_UNROLL for (int r = 0; r < 1; r++) gy[r][j] = y[y_at + i * row_step + r * rhs_step];
    }
    for (int64_t at = 0; at < m; at += 4) {
        FL_UNROLL for (int j = 0; j < 4; j++) {
            fa[j] = ga[j]; fb[j] = gb[j]; fc[j] = gc[j];
            FL_UNROLL for (int r = 0; r < 1; r++) fy[r][j] = gy[r][j];
        }
        FL_UNROLL for (int j = 0; j < 4; j++) {
            const int64_t i = at + 4 + j < m ? at + 4 + j : m - 1;
            ga[j] = (i > 0 ? a[c_at + i * c_row] : (REAL)0); gb[j] = ((b[c_at + i * c_row]) * (i == 0 ? doubled : (REAL)1)); gc[j] = (i < rows - 1 ? c[c_at + i * c_row] : (REAL)0);
            FL_UNROLL for (int r = 0; r < 1; r++) gy[r][j] = y[y_at + i * row_step + r * rhs_step];
        }
        FL_UNROLL for (int j = 0; j < 4; j++) {
            const int64_t i = at + j;
            if (i < m) {
                const REAL pivot = fb[j] - fa[j] * cp, inverse = 1 / pivot;
                bad |= FL_BAD(pivot);
                cp = fc[j] * inverse;
                if (there) work[i * systems + q] = cp;
                FL_UNROLL for (int r = 0; r < 1; r++) {
                    yp[r] = (factor * fy[r][j] - fa[j] * yp[r]) * inverse;
                    if (there) x[x_at + i * row_step + r * rhs_step] = yp[r];
                }

            }
        }
    }


    FL_UNROLL for (int r = 0; r < 1; r++) bad |= yp[r] - yp[r] != 0;
    const int64_t top = m - 2;
    FL_UNROLL for (int j = 0; j < 4; j++) {
        const int64_t i = top - j > 0 ? top - j : 0;
        gc[j] = work[i * systems + q];
        FL_UNROLL for (int r = 0; r < 1; r++) gy[r][j] = x[x_at + i * row_step + r * rhs_step];
    }
    for (int64_t at = top; at >= 0; at -= 4) {
        FL_UNROLL for (int j = 0; j < 4; j++) {
            fc[j] = gc[j]; fa[j] = ga[j];
            FL_UNROLL for (int r = 0; r < 1; r++) fy[r][j] = gy[r][j];
        }
        FL_UNROLL for (int j = 0; j < 4; j++) {
            const int64_t i = at - 4 - j > 0 ? at - 4 - j : 0;
            gc[j] = work[i * systems + q];
            FL_UNROLL for (int r = 0; r < 1; r++) gy[r][j] = x[x_at + i * row_step + r * rhs_step];
        }
        FL_UNROLL for (int j = 0; j < 4; j++) {
            const int64_t i = at - j;
            if (i >= 0) {
                FL_UNROLL for (int r = 0; r < 1; r++) {
                    yp[r] = fy[r][j] - fc[j] * yp[r];
                    if (there) x[x_at + i * row_step + r * rhs_step] = yp[r];
                }
            }
        }
    }
    if (bad && there) FL_ATOMIC_MAX(status, (int)(q < INT32_MAX - 1 ? q + 1 : (int64_t)INT32_MAX));
}
