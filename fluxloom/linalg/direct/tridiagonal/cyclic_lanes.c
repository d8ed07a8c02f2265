/* Body of cyclic reduction for a chunk of W systems, the lanes; the equations are in plain_cyclic.py.
 *
 * AT(k, i, l) is a value of row i of lane l: of a, b, c (k = 0, 1, 2) or of a right-hand side (k = 3 ...). RHS of these
 * are reduced together, ALL with the column of the last unknown of periodic systems (BORDER). Rows M ... 2 M - 1 are
 * those of the next step of the parallel form. */
        const int64_t m = rows - BORDER, M = m;
        const int64_t across = c_inner; (void)across;
        REAL sum[W];
        for (int l = 0; l < W; l++) sum[l] = 0;
        for (int64_t i = 0; i < m; i++)
            for (int l = 0; l < W; l++) {
                const int at = l < lanes ? l : lanes - 1;
                const REAL twice = i == 0 && number + at == pinned ? (REAL)2 : (REAL)1;
                AT(0, i, l) = BORDER || i > 0 ? a[K(at, i)] : (REAL)0;
                AT(1, i, l) = MAIN(at, i);
                AT(2, i, l) = BORDER || i < m - 1 ? c[K(at, i)] : (REAL)0;
                for (int r = 0; r < RHS; r++) AT(3 + r, i, l) = (REAL)scale * y[Y(at, i, r)];
#if BORDER
                AT(3 + RHS, i, l) = (i == 0 ? a[K(at, i)] : (REAL)0) + (i == m - 1 ? c[K(at, i)] : (REAL)0);
#endif
            }
#if BORDER
        for (int l = 0; l < W; l++) { AT(0, 0, l) = 0; AT(2, m - 1, l) = 0; }
#endif
        int64_t span = 1;
        for (; m / span > SWITCH; span *= 2)
            for (int64_t i = 2 * span - 1; i < m; i += 2 * span) {
                const int64_t before = i - span, after = i + span;
                for (int l = 0; l < W; l++) {
                    const REAL pivot = AT(1, before, l), k1 = AT(0, i, l) / pivot;
                    AT(0, i, l) = -AT(0, before, l) * k1;
                    AT(1, i, l) -= AT(2, before, l) * k1;
                    for (int k = 3; k < 3 + ALL; k++) AT(k, i, l) -= AT(k, before, l) * k1;
                    if (after < m) {
                        const REAL other = AT(1, after, l), k2 = AT(2, i, l) / other;
                        AT(1, i, l) -= AT(0, after, l) * k2;
                        AT(2, i, l) = -AT(2, after, l) * k2;
                        for (int k = 3; k < 3 + ALL; k++) AT(k, i, l) -= AT(k, after, l) * k2;
                    } else {
                        AT(2, i, l) = 0;
                    }
                }
            }
        const int64_t count = m / span;
        int64_t now = 0;
        for (int64_t k = 1; k < count; k *= 2) {
            const int64_t next = M - now;
            for (int64_t j = 0; j < count; j++) {
                const int64_t i = span * (j + 1) - 1, front = i - k * span, after = i + k * span;
                for (int l = 0; l < W; l++) {
                    REAL low = 0, high = 0, main = AT(1, now + i, l);
                    const REAL k1 = j >= k ? AT(0, now + i, l) / AT(1, now + front, l) : (REAL)0;
                    const REAL k2 = j + k < count ? AT(2, now + i, l) / AT(1, now + after, l) : (REAL)0;
                    if (j >= k) {
                        low = -AT(0, now + front, l) * k1;
                        main -= AT(2, now + front, l) * k1;
                    }
                    if (j + k < count) {
                        main -= AT(0, now + after, l) * k2;
                        high = -AT(2, now + after, l) * k2;
                    }
                    AT(0, next + i, l) = low; AT(1, next + i, l) = main; AT(2, next + i, l) = high;
                    for (int v = 3; v < 3 + ALL; v++) {
                        REAL right = AT(v, now + i, l);
                        if (j >= k) right -= AT(v, now + front, l) * k1;
                        if (j + k < count) right -= AT(v, now + after, l) * k2;
                        AT(v, next + i, l) = right;
                    }
                }
            }
            now = next;
        }
        for (int64_t j = 0; j < count; j++) {
            const int64_t i = span * (j + 1) - 1;
            for (int l = 0; l < W; l++) {
                const REAL pivot = AT(1, now + i, l);
                for (int k = 3; k < 3 + ALL; k++) AT(k, i, l) = AT(k, now + i, l) / pivot;
            }
        }
        for (int64_t s1 = span / 2; s1 >= 1; s1 /= 2)
            for (int64_t i = s1 - 1; i < m; i += 2 * s1)
                for (int l = 0; l < W; l++) {
                    const REAL pivot = AT(1, i, l);
                    for (int k = 3; k < 3 + ALL; k++) {
                        REAL right = AT(k, i, l);
                        if (i - s1 >= 0) right -= AT(0, i, l) * AT(k, i - s1, l);
                        if (i + s1 < m) right -= AT(2, i, l) * AT(k, i + s1, l);
                        AT(k, i, l) = right / pivot;
                    }
                }
#if BORDER
        REAL far[RHS][W];
        for (int l = 0; l < W; l++) {
            const int at = l < lanes ? l : lanes - 1;
            const int64_t i = m;
            const REAL twice = 1, low = a[K(at, i)], high = c[K(at, i)];
            const REAL whole = MAIN(at, i), corner = whole - low * AT(3 + RHS, m - 1, l) - high * AT(3 + RHS, 0, l);
            if (l < lanes && number + at != pinned && LOST(corner, whole)) TELL(l);
            for (int r = 0; r < RHS; r++) {
                const REAL right = (REAL)scale * y[Y(at, i, r)];
                far[r][l] = (right - low * AT(3 + r, m - 1, l) - high * AT(3 + r, 0, l)) / corner;
            }
        }
        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < RHS; r++) x[X(l, m, r)] = far[r][l];
#endif
        for (int64_t i = 0; i < m; i++)
            for (int l = 0; l < lanes; l++)
                for (int r = 0; r < RHS; r++) {
#if BORDER
                    const REAL u = AT(3 + r, i, l) - AT(3 + RHS, i, l) * far[r][l];
#else
                    const REAL u = AT(3 + r, i, l);
#endif
                    sum[l] += u - u;
                    x[X(l, i, r)] = u;
                }
        for (int l = 0; l < lanes; l++) if (sum[l] != 0) TELL(l);
