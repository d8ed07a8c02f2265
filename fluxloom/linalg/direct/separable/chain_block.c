/* Body of `chain`: the rows of a system are spread over the items of a group and solved by parallel cyclic reduction in
 * shared memory. Source: R. W. Hockney and C. R. Jesshope, Parallel Computers (1981), section 5.4. */
    FL_SHARED REAL s0[ROWS], s1[ROWS], s2[ROWS];
    const int t = FL_MEMBER;
    const int64_t system = FL_GROUP;
    FIND_JOB(system)
    REAL v[CHUNK], below[CHUNK], above[CHUNK];
    FL_UNROLL
    for (int k = 0; k < CHUNK; k++) {
        const int i = t + k * BLOCK;
        v[k] = 0;
        for (int source = 0; source < 3 && i < ROWS; source++)
            if (weights[3 * job + source] != 0)
                v[k] += weights[3 * job + source] * table[(int64_t)columns[3 * job + source] * ROWS + i];
    }
    for (int64_t e = 0; e < longest; e++) {
        NEXT_ENTRY(e)
        REAL rhs[CHUNK];
        FL_UNROLL
        for (int k = 0; k < CHUNK; k++) {
            const int i = t + k * BLOCK;
            if (i >= ROWS) continue;
            const REAL inverse = 1 / ((b[i] + root) * (twice && i == 0 ? 2 : 1));
            below[k] = a[i] * inverse;
            above[k] = c[i] * inverse;
            rhs[k] = v[k] * inverse;
        }
        for (int step = 1; step < ROWS; step <<= 1) {
            FL_UNROLL
            for (int k = 0; k < CHUNK; k++) {
                const int i = t + k * BLOCK;
                if (i >= ROWS) continue;
                s0[i] = below[k];
                s1[i] = above[k];
                s2[i] = rhs[k];
            }
            FL_BARRIER();
            FL_UNROLL
            for (int k = 0; k < CHUNK; k++) {
                const int i = t + k * BLOCK;
                if (i >= ROWS) continue;
                const int low = i < step ? i - step + ROWS : i - step;
                const int high = i + step < ROWS ? i + step : i + step - ROWS;
                const REAL inverse = 1 / (1 - below[k] * s1[low] - above[k] * s0[high]);
                rhs[k] = (rhs[k] - below[k] * s2[low] - above[k] * s2[high]) * inverse;
                below[k] = -below[k] * s0[low] * inverse;
                above[k] = -above[k] * s1[high] * inverse;
            }
            FL_BARRIER();
        }
        FL_UNROLL
        for (int k = 0; k < CHUNK; k++)
            if (on && t + k * BLOCK < ROWS)
                v[k] = (e < adding ? v[k] : (REAL)0) + gain * rhs[k] / (1 + below[k] + above[k]);
    }
    FL_UNROLL
    for (int k = 0; k < CHUNK; k++)
        if (live && t + k * BLOCK < ROWS) table[(int64_t)targets[job] * ROWS + t + k * BLOCK] = v[k];
