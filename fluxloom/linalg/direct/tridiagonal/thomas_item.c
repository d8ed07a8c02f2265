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
