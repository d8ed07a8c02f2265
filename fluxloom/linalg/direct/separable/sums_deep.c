/* Body of `deep_sums`: SLICES work items share the addends of a row, WIDTH rows a group. */
    FL_SHARED REAL part[SLICES * WIDTH];
    const int member = FL_MEMBER, slice = member / WIDTH;
    const int64_t pieces = (ROWS + WIDTH - 1) / WIDTH, which = FL_GROUP / pieces % sums;
    const int64_t plane = FL_GROUP / pieces / sums, i = FL_GROUP % pieces * WIDTH + member % WIDTH;
    const int live = i < ROWS && plane < planes;
    FL_GLOBAL REAL *const table = u + (live ? plane * plane_step + i : 0);
    const int64_t target = (int64_t)targets[which] * ROWS;
    REAL sum = 0;
    if (live)
        for (int64_t e = begin[which] + slice; e < begin[which + 1]; e += SLICES)
            sum += weights[e] * table[(int64_t)columns[e] * ROWS];
    part[member] = sum;
    FL_BARRIER();
    for (int span = SLICES / 2; span > 0; span >>= 1) {
        if (slice < span) part[member] += part[member + span * WIDTH];
        FL_BARRIER();
    }
    if (live && slice == 0) table[target] = (keep ? table[target] : 0) + part[member];
