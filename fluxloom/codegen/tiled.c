/* Values of a tile on their way between the dats and the memory of a thread. */

/* Copy bytes past the caches, as far as the target is aligned. */
AI void fl_tile_stream(char *restrict to, const char *restrict from, size_t n) {
#if defined(__AVX__)
    const size_t head = (size_t)(-(uintptr_t)to & 31);
    if (n >= head + 32) {
        memcpy(to, from, head);
        to += head, from += head, n -= head;
        for (; n >= 32; to += 32, from += 32, n -= 32)
            _mm256_stream_si256((__m256i *)(void *)to, _mm256_loadu_si256((const __m256i *)(const void *)from));
    }
#endif
    memcpy(to, from, n);
}

/* Runs are triples: first global row, first local row, length. */
AI void fl_tile_in(char *restrict to, const char *restrict from, const int32_t *r, int64_t n, const size_t row) {
    for (; n > 0; n--, r += 3) {
        char *const target = to + (size_t)r[1] * row;
        const char *const source = from + (size_t)r[0] * row;
        if (r[2] == 1)
            memcpy(target, source, row);
        else
            memcpy(target, source, (size_t)r[2] * row);
    }
}

AI void fl_tile_out(
    char *restrict to, const char *restrict from, const int32_t *r, int64_t n, const size_t row, int64_t stream) {
    for (; n > 0; n--, r += 3) {
        char *const target = to + (size_t)r[0] * row;
        const char *const source = from + (size_t)r[1] * row;
        if (stream)
            fl_tile_stream(target, source, (size_t)r[2] * row);
        else
            memcpy(target, source, (size_t)r[2] * row);
    }
}
