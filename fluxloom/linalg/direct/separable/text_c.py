"""Chains of tridiagonal solves, sums of columns and a mean, in plain C.

``LANES`` systems are eliminated side by side by Thomas' method, in the lanes of vectors; packs of them are shared by
threads. Parameters and words as in `text`.
"""

from __future__ import annotations

__all__ = ["CHAIN", "MEAN", "SUMS"]

_SHARED_OUT = (
    "#pragma omp parallel for schedule(static) num_threads(fl_threads(threads)) if (threads != 1 && {count} > 1)"
)

_FORWARD = """
            REAL py[LANES] = {0}, pc[LANES] = {0}, pr[LANES] = {0};
            const int inner = PERIODIC ? ROWS - 1 : ROWS;
            for (int i = 0; i < inner; i++) {
                const REAL lower = a[i], wrapped = i ? 0 : lower, edge = PERIODIC && i == inner - 1 ? c[i] : 0;
                const REAL chained = i ? lower : 0, next = PERIODIC && i == inner - 1 ? 0 : c[i], main = b[i];
#pragma omp simd
                for (int l = 0; l < LANES; l++) {
                    const REAL inverse = 1 / ((main + root[l]) * (i ? 1 : first[l]) - chained * pc[l]);
                    py[l] = (v[i * LANES + l] - chained * py[l]) * inverse;
                    pc[l] = next * inverse;
                    y[i * LANES + l] = py[l];
                    upper[i * LANES + l] = pc[l];
                    if (PERIODIC) {
                        pr[l] = (wrapped + edge - chained * pr[l]) * inverse;
                        ring[i * LANES + l] = pr[l];
                    }
                }
            }
"""

_BACKWARD = """
            REAL x[LANES] = {0}, r[LANES] = {0}, end[LANES] = {0};
            for (int i = inner - 1; i >= 0; i--) {
#pragma omp simd
                for (int l = 0; l < LANES; l++) {
                    x[l] = y[i * LANES + l] - upper[i * LANES + l] * x[l];
                    if (PERIODIC) {
                        r[l] = ring[i * LANES + l] - upper[i * LANES + l] * r[l];
                        y[i * LANES + l] = x[l];
                        ring[i * LANES + l] = r[l];
                    } else {
                        v[i * LANES + l] = own[l] * v[i * LANES + l] + gain[l] * x[l];
                    }
                }
            }
            if (PERIODIC) {
                const int i = ROWS - 1;
                for (int l = 0; l < LANES; l++) {
                    end[l] = (v[i * LANES + l] - a[i] * py[l] - c[i] * x[l])
                           / (b[i] + root[l] - a[i] * pr[l] - c[i] * r[l]);
                    v[i * LANES + l] = own[l] * v[i * LANES + l] + gain[l] * end[l];
                }
                for (int k = 0; k < inner; k++)
#pragma omp simd
                    for (int l = 0; l < LANES; l++)
                        v[k * LANES + l] = own[l] * v[k * LANES + l]
                                         + gain[l] * (y[k * LANES + l] - ring[k * LANES + l] * end[l]);
            }
"""

CHAIN = (
    """
    const int64_t systems = jobs * planes, packs = (systems + LANES - 1) / LANES;
"""
    + _SHARED_OUT.format(count="packs")
    + """
    for (int64_t pack = 0; pack < packs; pack++) {
        REAL *const v = work + (int64_t)FL_THREAD * 4 * ROWS * LANES, *const y = v + ROWS * LANES;
        REAL *const upper = y + ROWS * LANES, *const ring = upper + ROWS * LANES;
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
            for (int source = 0; source < 3; source++) {
                const REAL weight = weights[3 * job[l] + source];
                const REAL *const from = u + plane[l] * plane_step + (int64_t)columns[3 * job[l] + source] * ROWS;
                if (source && weight == 0) continue;
                for (int i = 0; i < ROWS; i++) v[i * LANES + l] = (source ? v[i * LANES + l] : 0) + weight * from[i];
            }
        }
        for (int64_t e = 0; e < longest_here; e++) {
            REAL root[LANES], first[LANES], own[LANES], gain[LANES];
            for (int l = 0; l < LANES; l++) {
                const int on = e < count[l];
                root[l] = roots[entries[l] + (on ? e : 0)] + offset[l];
                own[l] = !on || e < kept[job[l]]; /* a lane whose job has ended keeps its values */
                gain[l] = on ? gains[entries[l] + e] : 0;
                first[l] = on && entries[l] + e == pinned && plane[l] == pinned_plane ? 2 : 1;
            }
"""
    + _FORWARD
    + _BACKWARD
    + """
        }
        for (int l = 0; l < LANES && pack * LANES + l < systems; l++) {
            REAL *const to = u + plane[l] * plane_step + (int64_t)targets[job[l]] * ROWS;
            for (int i = 0; i < ROWS; i++) to[i] = v[i * LANES + l];
        }
    }
"""
)

SUMS = (
    """
    const int64_t pieces = (ROWS + PIECE - 1) / PIECE, total = sums * planes * pieces;
"""
    + _SHARED_OUT.format(count="total")
    + """
    for (int64_t part = 0; part < total; part++) {
        const int64_t which = part / pieces % sums, from = part % pieces * PIECE;
        const int64_t size = ROWS - from < PIECE ? ROWS - from : PIECE;
        REAL *const table = u + part / pieces / sums * plane_step + from;
        REAL *const target = table + (int64_t)targets[which] * ROWS;
        REAL sum[PIECE];
        for (int64_t i = 0; i < size; i++) sum[i] = keep ? target[i] : 0;
        for (int64_t e = begin[which]; e < begin[which + 1]; e++) {
            const REAL weight = weights[e], *const column = table + (int64_t)columns[e] * ROWS;
            for (int64_t i = 0; i < size; i++) sum[i] += weight * column[i];
        }
        for (int64_t i = 0; i < size; i++) target[i] = sum[i];
    }
"""
)

MEAN = """
    REAL total = 0;
    for (int64_t j = 0; j < count; j++) {
        REAL sum = 0;
        for (int64_t i = 0; i < ROWS; i++) sum += row_weights[i] * u[plane * plane_step + j * ROWS + i];
        total += column_weights[j] * sum;
    }
    partial[0] = mean[0] = total;
"""
