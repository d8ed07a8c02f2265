typedef struct {
    int64_t n;
    int32_t * list;
    int64_t at;
    int64_t * msg;
    int32_t * d0;
} fl_pack_args;
void fl_pack(const int64_t *S) {
    const fl_pack_args *const A = (const fl_pack_args *)S;
    for (int64_t k = 0; k < A->n; k++) {
        int32_t *const r = (int32_t *)(A->msg + A->at);
        r[k] = A->d0[A->list[k]];
    }
}

typedef struct {
    int64_t n;
    int32_t * list;
    int64_t at;
    int64_t * msg;
    int32_t * d0;
} fl_unpack_args;
void fl_unpack(const int64_t *S) {
    const fl_unpack_args *const A = (const fl_unpack_args *)S;
    for (int64_t k = 0; k < A->n; k++) {
        const int32_t *const r = (const int32_t *)(A->msg + A->at);
        A->d0[A->list[k]] = r[k];
    }
}
