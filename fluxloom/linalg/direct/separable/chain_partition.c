/* Body of `chain`: ITEMS work items, a power of two, share a system; each has CHUNK rows or one less in registers.
 *
 * An item eliminates all but its last row (u_k = Y_k + L_k s_left + R_k s, s the unknowns of the last rows), the last
 * rows are solved by parallel cyclic reduction around a ring, which is right for periodic systems too since the others
 * have no coupling there, and the rest follows without another sweep. Source: the spike and partition methods of H. H.
 * Wang, ACM Trans. Math. Softw. 7 (1981) 170. */
    FL_SHARED REAL s0[BLOCK], s1[BLOCK], s2[BLOCK];
    const int member = FL_MEMBER, t = member & (ITEMS - 1), base = member - t;
    const int left = base + ((t + ITEMS - 1) & (ITEMS - 1)), right = base + ((t + 1) & (ITEMS - 1));
    const int64_t system = FL_GROUP * (BLOCK / ITEMS) + member / ITEMS;
    FIND_JOB(system)
    /* Slots 0 ... CHUNK - 1 hold the rows from `row` on; where there is one row less, slot 0 stands for the last row of
       the item before. */
    const int head = (int)((int64_t)t * ROWS / ITEMS);
    const int skip = CHUNK - ((int)((int64_t)(t + 1) * ROWS / ITEMS) - head), row = head - skip, last = row + CHUNK - 1;
    REAL v[CHUNK];
    FL_UNROLL
    for (int k = 0; k < CHUNK; k++) v[k] = 0;
    for (int source = 0; source < 3; source++) {
        const REAL weight = weights[3 * job + source];
        if (weight == 0) continue;
        const int64_t first = (int64_t)columns[3 * job + source] * ROWS + row;
        FL_UNROLL
        for (int k = 0; k < CHUNK; k++)
            if (k >= skip) v[k] += weight * table[first + k];
    }
    for (int64_t e = 0; e < longest; e++) {
        NEXT_ENTRY(e)
        REAL Y[CHUNK], L[CHUNK], R[CHUNK]; /* R first holds what upward substitution multiplies */
        REAL py = 0, pl = 1, pc = 0;
        FL_UNROLL
        for (int k = 0; k < CHUNK - 1; k++) {
            if (k >= skip) {
                const REAL lower = a[row + k];
                const REAL main = (b[row + k] + root) * (twice && row + k == 0 ? 2 : 1);
                const REAL inverse = 1 / (main - lower * pc);
                py = (v[k] - lower * py) * inverse;
                pl = -lower * pl * inverse;
                pc = c[row + k] * inverse;
            }
            Y[k] = py;
            L[k] = pl;
            R[k] = pc;
        }
        FL_UNROLL
        for (int k = CHUNK - 2; k >= 0; k--) {
            if (k == CHUNK - 2) {
                R[k] = -R[k];
            } else {
                const REAL upper = R[k];
                Y[k] -= upper * Y[k + 1];
                L[k] -= upper * L[k + 1];
                R[k] = -upper * R[k + 1];
            }
        }
        const REAL lower = a[last], upper = c[last];
        REAL main = (b[last] + root) * (twice && last == 0 ? 2 : 1);
        /* The first unknown of each item, for the item before it. */
        s0[member] = skip >= CHUNK - 1 ? (REAL)0 : skip ? Y[CHUNK > 1] : Y[0];
        s1[member] = skip >= CHUNK - 1 ? (REAL)0 : skip ? L[CHUNK > 1] : L[0];
        s2[member] = skip >= CHUNK - 1 ? (REAL)1 : skip ? R[CHUNK > 1] : R[0];
        FL_BARRIER();
        REAL rhs = v[CHUNK - 1] - upper * s0[right], above = upper * s2[right];
        main += upper * s1[right];
        FL_BARRIER();
        REAL below = lower;
        if (CHUNK > 1) {
            rhs -= lower * Y[CHUNK > 1 ? CHUNK - 2 : 0];
            main += lower * R[CHUNK > 1 ? CHUNK - 2 : 0];
            below = lower * L[CHUNK > 1 ? CHUNK - 2 : 0];
        }
        const REAL unit = 1 / main;
        below *= unit;
        above *= unit;
        rhs *= unit;
        for (int step = 1; step < ITEMS; step <<= 1) {
            s0[member] = below;
            s1[member] = above;
            s2[member] = rhs;
            FL_BARRIER();
            const int i = base + ((t - step) & (ITEMS - 1)), j = base + ((t + step) & (ITEMS - 1));
            const REAL inverse = 1 / (1 - below * s1[i] - above * s0[j]);
            rhs = (rhs - below * s2[i] - above * s2[j]) * inverse;
            below = -below * s0[i] * inverse;
            above = -above * s1[j] * inverse;
            FL_BARRIER();
        }
        const REAL s = rhs / (1 + below + above);
        s0[member] = s;
        FL_BARRIER();
        const REAL before = s0[left];
        FL_BARRIER();
        if (on) {
            const REAL own = e < adding ? (REAL)1 : (REAL)0;
            FL_UNROLL
            for (int k = 0; k < CHUNK - 1; k++) v[k] = own * v[k] + gain * (Y[k] + L[k] * before + R[k] * s);
            v[CHUNK - 1] = own * v[CHUNK - 1] + gain * s;
        }
    }
    if (live) {
        const int64_t first = (int64_t)targets[job] * ROWS + row;
        FL_UNROLL
        for (int k = 0; k < CHUNK; k++)
            if (k >= skip) table[first + k] = v[k];
    }
