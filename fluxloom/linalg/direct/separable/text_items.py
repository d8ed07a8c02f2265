"""Chains of tridiagonal solves as kernels of work items: many items a system, a group a system, an item a system.

All have the parameters of ``chain`` in `text` and the words ``REAL``, ``ROWS`` (unknowns of a system), ``PERIODIC``;
values of a column are neighbours in memory.

``PARTITION``: ``ITEMS`` items, a power of two, share a system; each has ``CHUNK`` rows or one less in registers. It
eliminates all but its last row (``u_k = Y_k + L_k s_left + R_k s``, ``s`` the unknowns of the last rows), the last rows
are solved by parallel cyclic reduction around a ring, which is right for periodic systems too since the others have no
coupling there, and the rest follows without another sweep. ``BLOCK``: rows are spread over the items and solved by
parallel cyclic reduction in shared memory. ``THREAD``: Thomas, with working memory in which neighbours belong to
different systems.

Source: the spike and partition methods of H. H. Wang, ACM Trans. Math. Softw. 7 (1981) 170; parallel cyclic reduction:
R. W. Hockney and C. R. Jesshope, Parallel Computers (1981), section 5.4.
"""

from __future__ import annotations

__all__ = ["BLOCK", "PARTITION", "THREAD"]

_JOB = """
    const int live = system < jobs * planes;
    const int64_t plane = live ? system / jobs : 0, job = live ? system - plane * jobs : 0;
    FL_GLOBAL REAL *const table = u + plane * plane_step;
    const int64_t entries = begin[job];
    const int64_t count = live ? begin[job + 1] - entries : 0, adding = kept[job];
    const REAL offset = shift[plane];
"""

_ENTRY = """
        const int on = e < count;
        const REAL gain = on ? gains[entries + e] : (REAL)0;
        const REAL root = on ? roots[entries + e] + offset : (REAL)1;
        const int twice = on && entries + e == pinned && plane == pinned_plane;
"""

PARTITION = (
    """
    FL_SHARED REAL s0[BLOCK], s1[BLOCK], s2[BLOCK];
    const int member = FL_MEMBER, t = member & (ITEMS - 1), base = member - t;
    const int left = base + ((t + ITEMS - 1) & (ITEMS - 1)), right = base + ((t + 1) & (ITEMS - 1));
    const int64_t system = FL_GROUP * (BLOCK / ITEMS) + member / ITEMS;
"""
    + _JOB
    + """
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
    for (int64_t e = 0; e < longest; e++) {"""
    + _ENTRY
    + """
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
"""
)

BLOCK = (
    """
    FL_SHARED REAL s0[ROWS], s1[ROWS], s2[ROWS];
    const int t = FL_MEMBER;
    const int64_t system = FL_GROUP;
"""
    + _JOB
    + """
    REAL v[CHUNK], below[CHUNK], above[CHUNK];
    FL_UNROLL
    for (int k = 0; k < CHUNK; k++) {
        const int i = t + k * BLOCK;
        v[k] = 0;
        for (int source = 0; source < 3 && i < ROWS; source++)
            if (weights[3 * job + source] != 0)
                v[k] += weights[3 * job + source] * table[(int64_t)columns[3 * job + source] * ROWS + i];
    }
    for (int64_t e = 0; e < longest; e++) {"""
    + _ENTRY
    + """
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
"""
)

THREAD = (
    """
    const int64_t system = FL_ITEM, systems = jobs * planes;
"""
    + _JOB
    + """
    if (!live) return;
    FL_GLOBAL REAL *const v = work + system;
    FL_GLOBAL REAL *const y = v + (int64_t)ROWS * systems;
    FL_GLOBAL REAL *const upper = y + (int64_t)ROWS * systems;
    FL_GLOBAL REAL *const ring = upper + (int64_t)ROWS * systems;
    for (int i = 0; i < ROWS; i++) {
        REAL sum = 0;
        for (int source = 0; source < 3; source++)
            if (weights[3 * job + source] != 0)
                sum += weights[3 * job + source] * table[(int64_t)columns[3 * job + source] * ROWS + i];
        v[i * systems] = sum;
    }
    for (int64_t e = 0; e < count; e++) {"""
    + _ENTRY
    + """
        const int inner = PERIODIC ? ROWS - 1 : ROWS;
        const REAL own = e < adding ? (REAL)1 : (REAL)0;
        REAL py = 0, pc = 0, pr = 1; /* pr: what the last row of a ring contributes */
        for (int i = 0; i < inner; i++) {
            const REAL inverse = 1 / ((b[i] + root) * (twice && i == 0 ? 2 : 1) - (i ? a[i] * pc : 0));
            py = (v[i * systems] - (i ? a[i] * py : 0)) * inverse;
            pc = PERIODIC && i == inner - 1 ? 0 : c[i] * inverse;
            y[i * systems] = py;
            upper[i * systems] = pc;
            if (PERIODIC) {
                pr = (a[i] * (i ? -pr : 1) + (i == inner - 1 ? c[i] : 0)) * inverse;
                ring[i * systems] = pr;
            }
        }
        REAL end = 0;
        if (PERIODIC) {
            REAL x = py, r = pr;
            for (int i = inner - 2; i >= 0; i--) {
                x = y[i * systems] - upper[i * systems] * x;
                r = ring[i * systems] - upper[i * systems] * r;
                y[i * systems] = x;
                ring[i * systems] = r;
            }
            const int i = ROWS - 1;
            end = (v[i * systems] - a[i] * py - c[i] * x) / (b[i] + root - a[i] * pr - c[i] * r);
            v[i * systems] = own * v[i * systems] + gain * end;
            for (int k = 0; k < inner; k++)
                v[k * systems] = own * v[k * systems] + gain * (y[k * systems] - ring[k * systems] * end);
        } else {
            REAL x = 0;
            for (int i = inner - 1; i >= 0; i--) {
                x = y[i * systems] - upper[i * systems] * x;
                v[i * systems] = own * v[i * systems] + gain * x;
            }
        }
    }
    for (int i = 0; i < ROWS; i++) table[(int64_t)targets[job] * ROWS + i] = v[i * systems];
"""
)
