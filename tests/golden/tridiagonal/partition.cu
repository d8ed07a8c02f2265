#define REAL double
#define FL_BAD(pivot) ((pivot) == 0 || (pivot) - (pivot) != 0)
#define FL_LOST(pivot, whole) (FL_BAD(pivot) || ((pivot) < 0 ? -(pivot) : (pivot)) <= (REAL)0.0 * rows * ((whole) < 0 ? -(whole) : (whole)))

extern "C" __global__ void __launch_bounds__(256, 2) fl_partition(
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
    FL_SHARED REAL box[2048];
    const int lane = FL_MEMBER % 4, t = FL_MEMBER / 4;
    const int64_t systems = inner * outer;
    const int64_t number = FL_GROUP * 4 + lane;
    const int there = number < systems;
    const int64_t q = there ? number : systems - 1;
    const int64_t o = (int64_t)((uint32_t)q / (uint32_t)inner), s = q - o * inner;
    const int64_t y_at = y_first + o * outer_step + s * inner_step;
    const int64_t x_at = x_first + o * outer_step + s * inner_step;
    const REAL shift = inner_shift[s] + outer_shift[o];
    const REAL factor = (REAL)scale, doubled = q == pinned ? (REAL)2 : (REAL)1;
    int bad = 0;

    /* Rows of this item: begin - pad + j, j = 0 ... K - 1. With pad the first one repeats the last row before. */
    const int begin = t * 8 + (t < 0 ? t : 0), pad = 0, from = begin - pad;
    REAL A[8], B[8], C[8], Y[2][8];

    const size_t places = (size_t)(y + y_at) | (size_t)(x + x_at) | (size_t)row_step * sizeof(REAL);
    const int even = (places & (2 * sizeof(REAL) - 1)) == 0;
    if (even) {
        FL_UNROLL for (int j = 0; j < 8; j++) {
            const int64_t i = from + j > 0 ? from + j : 0;
            const double2 pair = *(FL_GLOBAL const double2 *)(y + y_at + i * row_step);
            Y[0][j] = factor * pair.x;
            Y[1][j] = factor * pair.y;
        }
    } else {
    FL_UNROLL for (int j = 0; j < 8; j++) {
        const int64_t i = from + j > 0 ? from + j : 0;
        FL_UNROLL for (int r = 0; r < 2; r++) Y[r][j] = factor * y[y_at + i * row_step + r * rhs_step];
    }
    }

    const size_t tables = (size_t)a | (size_t)b | (size_t)c | (size_t)mass;
    if (c_row == 1 && (tables & (2 * sizeof(REAL) - 1)) == 0) {
        FL_UNROLL for (int j = 0; j < 8; j += 2) {
            const double2 low = *(FL_GLOBAL const double2 *)(a + from + j);
            const double2 main = *(FL_GLOBAL const double2 *)(b + from + j);
            const double2 high = *(FL_GLOBAL const double2 *)(c + from + j);
            A[j] = low.x; B[j] = main.x; C[j] = high.x;
            A[j + 1] = low.y; B[j + 1] = main.y; C[j + 1] = high.y;
            const double2 more = *(FL_GLOBAL const double2 *)(mass + from + j);
            B[j] += more.x * shift; B[j + 1] += more.y * shift;
        }
    if (t == 0) B[0] *= doubled;
    if (t == 0) A[0] = 0;
    if (t == 63) C[7] = 0;
    } else {
    FL_UNROLL for (int j = 0; j < 8; j++) {
        const int64_t i = from + j > 0 ? from + j : 0;
        A[j] = (i > 0 ? a[i * c_row] : (REAL)0); B[j] = ((b[i * c_row] + mass[i] * shift) * (i == 0 ? doubled : (REAL)1)); C[j] = (i < rows - 1 ? c[i * c_row] : (REAL)0);
    }
    }

    REAL cp = 0, left = -1, d[2];
    FL_UNROLL for (int r = 0; r < 2; r++) d[r] = 0;
    FL_UNROLL for (int j = 0; j < 8 - 1; j++) {
        const REAL pivot = B[j] - A[j] * cp, inverse = 1 / pivot;
        cp = C[j] * inverse;
        FL_UNROLL for (int r = 0; r < 2; r++) { d[r] = (Y[r][j] - A[j] * d[r]) * inverse; Y[r][j] = d[r]; }
        left = -A[j] * left * inverse;
        A[j] = left;
        C[j] = cp;
    }
    /* The first row in terms of the last rows of the chunk before and of this one: x = D - L x_p - M x_last. */
    REAL L = 0, M = -1, D[2];
    FL_UNROLL for (int r = 0; r < 2; r++) D[r] = 0;
    FL_UNROLL for (int j = 8 - 2; j >= 0; j--) {
        if (j > 0 || !pad) {
            FL_UNROLL for (int r = 0; r < 2; r++) D[r] = Y[r][j] - C[j] * D[r];
            L = A[j] - C[j] * L;
            M = -C[j] * M;
        }
    }
    const REAL below = A[8 - 1], above = C[8 - 1];
    REAL main = B[8 - 1] - below * cp, low = -below * left, high, z[2];

    box[FL_MEMBER] = L; box[256 + FL_MEMBER] = M;
    FL_UNROLL for (int r = 0; r < 2; r++) box[(2 + r) * 256 + FL_MEMBER] = D[r];
    FL_BARRIER();
    {
        const int next = (((t + 1) & 63) * 4 + lane);
        main -= above * box[next];
        high = -above * box[256 + next];
        const REAL inverse = 1 / main;
        low *= inverse; high *= inverse;
        FL_UNROLL for (int r = 0; r < 2; r++)
            z[r] = (Y[r][8 - 1] - below * d[r] - above * box[(2 + r) * 256 + next]) * inverse;
    }

    {
        box[1024 + FL_MEMBER] = low; box[1024 + 256 + FL_MEMBER] = high;
        FL_UNROLL for (int r = 0; r < 2; r++) box[1024 + (2 + r) * 256 + FL_MEMBER] = z[r];
        FL_BARRIER();
        const int m = 1024 + (((t - 1) & 63) * 4 + lane), p = 1024 + (((t + 1) & 63) * 4 + lane);
        const REAL pivot = 1 - low * box[256 + m] - high * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < 2; r++)
            z[r] = (z[r] - low * box[(2 + r) * 256 + m] - high * box[(2 + r) * 256 + p]) * inverse;
        low = -low * box[m] * inverse;
        high = -high * box[256 + p] * inverse;
    }

    {
        box[0 + FL_MEMBER] = low; box[0 + 256 + FL_MEMBER] = high;
        FL_UNROLL for (int r = 0; r < 2; r++) box[0 + (2 + r) * 256 + FL_MEMBER] = z[r];
        FL_BARRIER();
        const int m = 0 + (((t - 2) & 63) * 4 + lane), p = 0 + (((t + 2) & 63) * 4 + lane);
        const REAL pivot = 1 - low * box[256 + m] - high * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < 2; r++)
            z[r] = (z[r] - low * box[(2 + r) * 256 + m] - high * box[(2 + r) * 256 + p]) * inverse;
        low = -low * box[m] * inverse;
        high = -high * box[256 + p] * inverse;
    }

    {
        box[1024 + FL_MEMBER] = low; box[1024 + 256 + FL_MEMBER] = high;
        FL_UNROLL for (int r = 0; r < 2; r++) box[1024 + (2 + r) * 256 + FL_MEMBER] = z[r];
        FL_BARRIER();
        const int m = 1024 + (((t - 4) & 63) * 4 + lane), p = 1024 + (((t + 4) & 63) * 4 + lane);
        const REAL pivot = 1 - low * box[256 + m] - high * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < 2; r++)
            z[r] = (z[r] - low * box[(2 + r) * 256 + m] - high * box[(2 + r) * 256 + p]) * inverse;
        low = -low * box[m] * inverse;
        high = -high * box[256 + p] * inverse;
    }

    {
        box[0 + FL_MEMBER] = low; box[0 + 256 + FL_MEMBER] = high;
        FL_UNROLL for (int r = 0; r < 2; r++) box[0 + (2 + r) * 256 + FL_MEMBER] = z[r];
        FL_BARRIER();
        const int m = 0 + (((t - 8) & 63) * 4 + lane), p = 0 + (((t + 8) & 63) * 4 + lane);
        const REAL pivot = 1 - low * box[256 + m] - high * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < 2; r++)
            z[r] = (z[r] - low * box[(2 + r) * 256 + m] - high * box[(2 + r) * 256 + p]) * inverse;
        low = -low * box[m] * inverse;
        high = -high * box[256 + p] * inverse;
    }

    {
        box[1024 + FL_MEMBER] = low; box[1024 + 256 + FL_MEMBER] = high;
        FL_UNROLL for (int r = 0; r < 2; r++) box[1024 + (2 + r) * 256 + FL_MEMBER] = z[r];
        FL_BARRIER();
        const int m = 1024 + (((t - 16) & 63) * 4 + lane), p = 1024 + (((t + 16) & 63) * 4 + lane);
        const REAL pivot = 1 - low * box[256 + m] - high * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < 2; r++)
            z[r] = (z[r] - low * box[(2 + r) * 256 + m] - high * box[(2 + r) * 256 + p]) * inverse;
        low = -low * box[m] * inverse;
        high = -high * box[256 + p] * inverse;
    }

    {
        const REAL both = low + high;
        box[0 + FL_MEMBER] = both;
        FL_UNROLL for (int r = 0; r < 2; r++) box[0 + (1 + r) * 256 + FL_MEMBER] = z[r];
        FL_BARRIER();
        const int p = 0 + (((t + 32) & 63) * 4 + lane);
        const REAL pivot = 1 - both * box[p], inverse = 1 / pivot;
        FL_UNROLL for (int r = 0; r < 2; r++) z[r] = (z[r] - both * box[(1 + r) * 256 + p]) * inverse;
    }

    FL_UNROLL for (int r = 0; r < 2; r++) box[1024 + r * 256 + FL_MEMBER] = z[r];
    FL_BARRIER();
    /* A pivot that vanished, in the chunk or in the reduction, left no number here, whatever it was multiplied by. */
    FL_UNROLL for (int r = 0; r < 2; r++) bad |= z[r] - z[r] != 0;
    FL_UNROLL for (int r = 0; r < 2; r++) {
        const REAL known = box[1024 + r * 256 + (((t - 1) & 63) * 4 + lane)];
        REAL last = z[r];
        Y[r][8 - 1] = last;
        FL_UNROLL for (int j = 8 - 2; j >= 0; j--) {
            last = Y[r][j] - A[j] * known - C[j] * last;
            Y[r][j] = last;
        }
    }

    if (even) {
        FL_UNROLL for (int j = 0; j < 8; j++) {
            const int64_t i = from + j;
            if (there && (j > 0 || !pad)) {
                double2 pair;
                pair.x = Y[0][j];
                pair.y = Y[1][j];
                *(FL_GLOBAL double2 *)(x + x_at + i * row_step) = pair;
            }
        }
    } else {
    FL_UNROLL for (int j = 0; j < 8; j++) {
        const int64_t i = from + j;
        if (there && (j > 0 || !pad)) {
            FL_UNROLL for (int r = 0; r < 2; r++) x[x_at + i * row_step + r * rhs_step] = Y[r][j];
        }
    }
    }
    if (bad && there) FL_ATOMIC_MAX(status, (int)(q < INT32_MAX - 1 ? q + 1 : (int64_t)INT32_MAX));
}
