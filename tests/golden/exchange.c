typedef struct {
    int64_t n;
    int32_t * list;
    int32_t * where;
    int64_t * msg;
    int64_t * d0;
    int32_t * d1;
    int64_t s1;
    uint16_t * d2;
    uint8_t * d3;
} fl_pack_args;
void fl_pack(const int64_t *S) {
    const fl_pack_args *const A = (const fl_pack_args *)S;
    for (int64_t k = 0; k < A->n; k++) {
        const int64_t e = A->list[k];
        int64_t *const r0 = (int64_t *)(A->msg + A->where[k]);
        r0[0] = A->d0[(e) * 4 + 0];
        r0[1] = A->d0[(e) * 4 + 1];
        r0[2] = A->d0[(e) * 4 + 2];
        r0[3] = A->d0[(e) * 4 + 3];
        int32_t *const r1 = (int32_t *)(A->msg + A->where[k]);
        r1[8] = A->d1[(0) * A->s1 + (e)];
        r1[9] = A->d1[(1) * A->s1 + (e)];
        uint16_t *const r2 = (uint16_t *)(A->msg + A->where[k]);
        r2[20] = A->d2[((e) / 8) * 8 + (0) * 8 + (e) % 8];
        uint8_t *const r3 = (uint8_t *)(A->msg + A->where[k]);
        r3[42] = A->d3[(e) * 3 + 0];
        r3[43] = A->d3[(e) * 3 + 1];
        r3[44] = A->d3[(e) * 3 + 2];
    }
}

typedef struct {
    int64_t n;
    int32_t * list;
    int32_t * where;
    int64_t * msg;
    int64_t * d0;
    int32_t * d1;
    int64_t s1;
    uint16_t * d2;
    uint8_t * d3;
} fl_unpack_args;
void fl_unpack(const int64_t *S) {
    const fl_unpack_args *const A = (const fl_unpack_args *)S;
    for (int64_t k = 0; k < A->n; k++) {
        const int64_t e = A->list[k];
        const int64_t *const r0 = (const int64_t *)(A->msg + A->where[k]);
        A->d0[(e) * 4 + 0] = r0[0];
        A->d0[(e) * 4 + 1] = r0[1];
        A->d0[(e) * 4 + 2] = r0[2];
        A->d0[(e) * 4 + 3] = r0[3];
        const int32_t *const r1 = (const int32_t *)(A->msg + A->where[k]);
        A->d1[(0) * A->s1 + (e)] = r1[8];
        A->d1[(1) * A->s1 + (e)] = r1[9];
        const uint16_t *const r2 = (const uint16_t *)(A->msg + A->where[k]);
        A->d2[((e) / 8) * 8 + (0) * 8 + (e) % 8] = r2[20];
        const uint8_t *const r3 = (const uint8_t *)(A->msg + A->where[k]);
        A->d3[(e) * 3 + 0] = r3[42];
        A->d3[(e) * 3 + 1] = r3[43];
        A->d3[(e) * 3 + 2] = r3[44];
    }
}
