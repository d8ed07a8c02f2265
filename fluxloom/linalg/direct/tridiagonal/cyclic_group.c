/* Body of cyclic reduction in the memory of a group, `box`; the equations are in kernels_cyclic.py.
 *
 * SIDE lines of M rows, WIDTH items each; an item has EACH rows of a line, SOME of those of the parallel form. RHS
 * right-hand sides are reduced together, ALL with the column of the last unknown of periodic systems (BORDER). */
#define PLACE(row) (line * PITCH + (row) + ((row) >> GAP))
#define A(at) box[at]
#define B(at) box[SIZE + at]
#define C(at) box[2 * SIZE + at]
#define Y(r, at) box[(3 + r) * SIZE + at]
    FL_UNROLL for (int v = 0; v < EACH; v++) {
        const int row = w + v * WIDTH;
        if (row < M) {
            const int64_t i = row;
            const int at = PLACE(row);
            REAL below = LOW(i), above = HIGH(i);
#if BORDER
            REAL far = 0;
            if (row == 0) { far += below; below = 0; }
            if (row == M - 1) { far += above; above = 0; }
            Y(RHS, at) = far;
#endif
            A(at) = below;
            B(at) = MAIN(i);
            C(at) = above;
            FL_UNROLL for (int r = 0; r < RHS; r++)
                Y(r, at) = factor * y[y_at + i * row_step + r * rhs_step];
        }
    }
    FL_BARRIER();
    /* Cyclic reduction: every second of the rows that are left loses its neighbours. */
    int stride = 1;
    for (; M / stride > SWITCH; stride *= 2) {
        for (int j = w; j < M / (2 * stride); j += WIDTH) {
            const int row = (j + 1) * 2 * stride - 1, at = PLACE(row);
            const int m = PLACE(row >= stride ? row - stride : 0);
            const int p = PLACE(row + stride < M ? row + stride : 0), has = row + stride < M;
            const REAL k = A(at) / B(m), g = has ? C(at) / B(p) : (REAL)0;
            B(at) -= k * C(m) + (has ? g * A(p) : (REAL)0);
            FL_UNROLL for (int r = 0; r < ALL; r++)
                Y(r, at) -= k * Y(r, m) + (has ? g * Y(r, p) : (REAL)0);
            A(at) = -k * A(m);
            C(at) = has ? -g * C(p) : (REAL)0;
        }
        FL_BARRIER();
    }
    /* Parallel cyclic reduction: all of them do, until no couplings are left. */
    const int left = M / stride;
    for (int k = 1; k < left; k *= 2) {
        REAL na[SOME], nb[SOME], nc[SOME], ny[ALL][SOME];
        FL_UNROLL for (int v = 0; v < SOME; v++) {
            const int j = w + v * WIDTH;
            if (j < left) {
                const int row = (j + 1) * stride - 1, far = k * stride, at = PLACE(row);
                const int m = PLACE(j >= k ? row - far : 0), p = PLACE(j + k < left ? row + far : 0);
                const REAL al = j >= k ? -A(at) / B(m) : (REAL)0;
                const REAL be = j + k < left ? -C(at) / B(p) : (REAL)0;
                na[v] = j >= k ? al * A(m) : (REAL)0;
                nc[v] = j + k < left ? be * C(p) : (REAL)0;
                nb[v] = B(at) + (j >= k ? al * C(m) : (REAL)0) + (j + k < left ? be * A(p) : (REAL)0);
                FL_UNROLL for (int r = 0; r < ALL; r++)
                    ny[r][v] =
                        Y(r, at) + (j >= k ? al * Y(r, m) : (REAL)0) + (j + k < left ? be * Y(r, p) : (REAL)0);
            }
        }
        FL_BARRIER();
        FL_UNROLL for (int v = 0; v < SOME; v++) {
            const int j = w + v * WIDTH;
            if (j < left) {
                const int row = (j + 1) * stride - 1, at = PLACE(row);
                A(at) = na[v]; B(at) = nb[v]; C(at) = nc[v];
                FL_UNROLL for (int r = 0; r < ALL; r++) Y(r, at) = ny[r][v];
            }
        }
        FL_BARRIER();
    }
    for (int j = w; j < left; j += WIDTH) {
        const int row = (j + 1) * stride - 1, at = PLACE(row);
        const REAL pivot = B(at);
        bad |= FL_BAD(pivot);
        FL_UNROLL for (int r = 0; r < ALL; r++) Y(r, at) /= pivot;
    }
    FL_BARRIER();
    /* Backward: the rows that were taken out. */
    for (stride /= 2; stride > 0; stride /= 2) {
        for (int j = w; (2 * j + 1) * stride - 1 < M; j += WIDTH) {
            const int row = (2 * j + 1) * stride - 1, at = PLACE(row);
            const int m = PLACE(row >= stride ? row - stride : 0);
            const int p = PLACE(row + stride < M ? row + stride : 0), has = row + stride < M;
            const REAL pivot = B(at);
            bad |= FL_BAD(pivot);
            FL_UNROLL for (int r = 0; r < ALL; r++) {
                REAL found = Y(r, at);
                if (row >= stride) found -= A(at) * Y(r, m);
                if (has) found -= C(at) * Y(r, p);
                Y(r, at) = found / pivot;
            }
        }
        FL_BARRIER();
    }
#if BORDER /* the last row of a periodic system, and its unknown */
    REAL ends[RHS];
    {
        const int64_t i = M;
        const int first = PLACE(0), last = PLACE(M - 1);
        const REAL below = LOW(i), above = HIGH(i);
        const REAL whole = MAIN(i);
        const REAL pivot = whole - below * Y(RHS, last) - above * Y(RHS, first);
        bad |= FL_LOST(pivot, doubled == 1 ? whole : (REAL)0);
        FL_UNROLL for (int r = 0; r < RHS; r++) {
            ends[r] = factor * y[y_at + i * row_step + r * rhs_step];
            ends[r] -= below * Y(r, last) + above * Y(r, first);
            ends[r] /= pivot;
        }
    }
    FL_BARRIER(); /* the last row may lie in the same memory as the solution */
    if (there && w == 0) {
        FL_UNROLL for (int r = 0; r < RHS; r++) x[x_at + M * row_step + r * rhs_step] = ends[r];
    }
#endif
    FL_UNROLL for (int v = 0; v < EACH; v++) {
        const int row = w + v * WIDTH, at = PLACE(row);
        if (there && row < M) {
            FL_UNROLL for (int r = 0; r < RHS; r++) {
#if BORDER
                const REAL found = Y(r, at) - ends[r] * Y(RHS, at);
#else
                const REAL found = Y(r, at);
#endif
                bad |= found - found != 0;
                x[x_at + row * row_step + r * rhs_step] = found;
            }
        }
    }
