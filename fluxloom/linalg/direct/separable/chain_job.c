/* What a chain is told where items share a system: its plane, its job, the first and the number of its roots. */
#define FIND_JOB(system)                                                                                              \
    const int live = system < jobs * planes;                                                                          \
    const int64_t plane = live ? system / jobs : 0, job = live ? system - plane * jobs : 0;                           \
    FL_GLOBAL REAL *const table = u + plane * plane_step;                                                             \
    const int64_t entries = begin[job], count = live ? begin[job + 1] - entries : 0, adding = kept[job];              \
    const REAL offset = shift[plane];

/* One solve of it; past its last root the group still waits for others, with a gain of zero. */
#define NEXT_ENTRY(e)                                                                                                 \
    const int on = e < count;                                                                                         \
    const REAL gain = on ? gains[entries + e] : (REAL)0, root = on ? roots[entries + e] + offset : (REAL)1;           \
    const int twice = on && entries + e == pinned && plane == pinned_plane;
