/* Body of `chain` for a pack of LANES systems: Thomas's algorithm, the systems side by side in the lanes of a vector.
 *
 * A work item has a pack of one system. Values of row i are v[i * STEP + l]; HELD is where those of the pack begin in
 * `work`. A ring is cut before its last row, whose unknown is `end`: x = y - ring end in the others. */
        FL_GLOBAL REAL *const v = work + HELD, *const y = v + ROWS * STEP;
        FL_GLOBAL REAL *const upper = y + ROWS * STEP, *const ring = upper + ROWS * STEP;
        int64_t entries[LANES], count[LANES], job[LANES], plane[LANES], longest_here = 0;
        REAL offset[LANES];
        for (int l = 0; l < LANES; l++) {
            const int64_t system = pack * LANES + l < systems ? pack * LANES + l : systems - 1;
            plane[l] = system / jobs;
            job[l] = system - plane[l] * jobs;
            entries[l] = begin[job[l]];
            count[l] = begin[job[l] + 1] - entries[l];
            offset[l] = shift[plane[l]];
            longest_here = count[l] > longest_here ? count[l] : longest_here;
            if (LANES == 1) { /* one store a row; lanes read column by column */
                for (int i = 0; i < ROWS; i++) {
                    REAL sum = 0;
                    for (int source = 0; source < 3; source++)
                        if (weights[3 * job[l] + source] != 0)
                            sum += weights[3 * job[l] + source] *
                                   u[plane[l] * plane_step + (int64_t)columns[3 * job[l] + source] * ROWS + i];
                    v[i * STEP] = sum;
                }
                continue;
            }
            for (int source = 0; source < 3; source++) {
                const REAL weight = weights[3 * job[l] + source];
                FL_GLOBAL const REAL *const from =
                    u + plane[l] * plane_step + (int64_t)columns[3 * job[l] + source] * ROWS;
                if (source && weight == 0) continue;
                for (int i = 0; i < ROWS; i++) v[i * STEP + l] = (source ? v[i * STEP + l] : 0) + weight * from[i];
            }
        }
        for (int64_t e = 0; e < longest_here; e++) {
            REAL root[LANES], first[LANES], own[LANES], gain[LANES];
            for (int l = 0; l < LANES; l++) {
                const int on = LANES == 1 || e < count[l];
                root[l] = roots[entries[l] + (on ? e : 0)] + offset[l];
                own[l] = !on || e < kept[job[l]]; /* a lane whose job has ended keeps its values */
                gain[l] = on ? gains[entries[l] + e] : 0;
                first[l] = on && entries[l] + e == pinned && plane[l] == pinned_plane ? 2 : 1;
            }
            REAL py[LANES] = {0}, pc[LANES] = {0}, pr[LANES] = {0};
            const int inner = PERIODIC ? ROWS - 1 : ROWS;
            for (int i = 0; i < inner; i++) {
                const int last = PERIODIC && i == inner - 1;
                const REAL lower = a[i], main = b[i], next = last ? 0 : c[i];
                const REAL wrapped = i ? 0 : lower, edge = last ? c[i] : 0;
                FL_SIMD
                for (int l = 0; l < LANES; l++) {
                    const REAL inverse = 1 / ((main + root[l]) * (i ? 1 : first[l]) - (i ? lower * pc[l] : 0));
                    py[l] = (v[i * STEP + l] - (i ? lower * py[l] : 0)) * inverse;
                    pc[l] = next * inverse;
                    y[i * STEP + l] = py[l];
                    upper[i * STEP + l] = pc[l];
                    if (PERIODIC) {
                        pr[l] = (wrapped + edge - (i ? lower * pr[l] : 0)) * inverse;
                        ring[i * STEP + l] = pr[l];
                    }
                }
            }
            REAL x[LANES] = {0}, r[LANES] = {0}, end[LANES] = {0};
            for (int i = inner - 1; i >= 0; i--) {
                FL_SIMD
                for (int l = 0; l < LANES; l++) {
                    x[l] = y[i * STEP + l] - upper[i * STEP + l] * x[l];
                    if (PERIODIC) {
                        r[l] = ring[i * STEP + l] - upper[i * STEP + l] * r[l];
                        y[i * STEP + l] = x[l];
                        ring[i * STEP + l] = r[l];
                    } else {
                        v[i * STEP + l] = own[l] * v[i * STEP + l] + gain[l] * x[l];
                    }
                }
            }
            if (PERIODIC) {
                const int i = ROWS - 1;
                for (int l = 0; l < LANES; l++) {
                    end[l] = (v[i * STEP + l] - a[i] * py[l] - c[i] * x[l])
                           / (b[i] + root[l] - a[i] * pr[l] - c[i] * r[l]);
                    v[i * STEP + l] = own[l] * v[i * STEP + l] + gain[l] * end[l];
                }
                for (int k = 0; k < inner; k++)
                    FL_SIMD
                    for (int l = 0; l < LANES; l++)
                        v[k * STEP + l] =
                            own[l] * v[k * STEP + l] + gain[l] * (y[k * STEP + l] - ring[k * STEP + l] * end[l]);
            }
        }
        for (int l = 0; l < LANES && pack * LANES + l < systems; l++) {
            FL_GLOBAL REAL *const to = u + plane[l] * plane_step + (int64_t)targets[job[l]] * ROWS;
            for (int i = 0; i < ROWS; i++) to[i] = v[i * STEP + l];
        }
