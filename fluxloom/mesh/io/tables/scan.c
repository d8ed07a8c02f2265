/* Scanner and formatter of tables of numbers in mesh text files.
 *
 * The buffer must be followed by one NUL byte.  Rows are lines; blank lines and lines that start with '%'
 * are skipped.  Columns beyond those asked for are ignored.
 * state[0]: byte position, in and out (on error: of the offending line).
 * state[1]: 1-based line of that position, in and out.
 * state[2]: out, line of the first row.   state[3]: out, line of the last row.
 * state[4]: out, rows read.               state[5]: out, entries read (ragged rows).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, TOO_FEW = 1, NOT_NUMBER = 2, SHORT_ROW = 3, RANGE = 4, FULL = 5 };

static const double TEN[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ','; }
static inline int is_end(char c) { return c == '\n' || c == '\0'; }

static inline const char *skip_blank(const char *p) {
    while (is_blank(*p)) p++;
    return p;
}

/* Moves to the next row; returns 0 at the end of the buffer or at a keyword ("NAME=" or "$Name"). */
static int next_row(const char **at, const char *end, int64_t *line) {
    const char *p = *at;
    for (;;) {
        const char *start = p;
        p = skip_blank(p);
        if (p >= end) { *at = start; return 0; }
        if (*p == '\n') { p++; (*line)++; continue; }
        if (*p == '%') {
            const char *stop = memchr(p, '\n', (size_t)(end - p));
            if (!stop) { *at = end; return 0; }
            p = stop + 1;
            (*line)++;
            continue;
        }
        if (*p == '$') { *at = start; return 0; }
        if (*p >= 'A' && *p <= 'Z') { /* "NELEM= 4" is a keyword, "NaN 0.5" a row */
            const char *q = p;
            while (!is_end(*q) && *q != '=') q++;
            if (*q == '=') { *at = start; return 0; }
        }
        *at = p;
        return 1;
    }
}

static const char *end_row(const char *p, const char *end, int64_t *line) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop) return end;
    (*line)++;
    return stop + 1;
}

/* 1: a number was read; 0: end of row (or comment); -1: not an integer; -2: out of the int64 range. */
static inline int read_int(const char **at, int64_t *value) {
    const char *p = skip_blank(*at);
    if (is_end(*p) || *p == '%') { *at = p; return 0; }
    int negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (*p < '0' || *p > '9') return -1;
    uint64_t v = 0;
    int digits = 0;
    while (*p >= '0' && *p <= '9') {
        if (++digits > 18) return -2;
        v = v * 10 + (uint64_t)(*p++ - '0');
    }
    if (!is_blank(*p) && !is_end(*p)) return -1;
    *value = negative ? -(int64_t)v : (int64_t)v;
    *at = p;
    return 1;
}

/* Letters of hexadecimal numbers and of "nan(...)", which are no numbers of tables. */
static int is_strange(char c) { return c == 'x' || c == 'X' || c == 'p' || c == 'P' || c == '('; }

static int is_mantissa(char c) { return (c >= '0' && c <= '9') || c == '.'; }

/* Exponents of Fortran are "1.5D-3", "1.5Q-3" and "1.5-103". */
static int read_slow(const char *start, const char *stop, double *value) {
    char text[400];
    size_t n = 0;
    if (start == stop || (size_t)(stop - start) >= sizeof text - 1) return -1;
    int fortran = 1;
    for (const char *p = start; p < stop; p++) {
        int first = p == start;
        if (is_strange(*p)) return -1;
        if (fortran && !first && is_mantissa(p[-1]) && (*p == '-' || *p == '+')) text[n++] = 'e';
        if (fortran && !first && is_mantissa(p[-1]) && (*p == 'd' || *p == 'D' || *p == 'q' || *p == 'Q')) {
            text[n++] = 'e';
            fortran = 0;
            continue;
        }
        if (!is_mantissa(*p) && !(first && (*p == '-' || *p == '+'))) fortran = 0;
        text[n++] = *p;
    }
    text[n] = '\0';
    char *rest;
    *value = strtod(text, &rest);
    return *rest ? -1 : 1;
}

/* Correctly rounded: exact when the digits fit 2^53 and the power of ten is at most 22, else strtod. */
static inline int read_double(const char **at, double *value) {
    const char *p = skip_blank(*at), *start = p;
    if (is_end(*p) || *p == '%') { *at = p; return 0; }
    int negative = *p == '-', digits = 0, exponent = 0;
    if (*p == '-' || *p == '+') p++;
    uint64_t m = 0;
    const char *first = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (digits < 19) { m = m * 10 + (uint64_t)(*p - '0'); if (m) digits++; }
        else digits = 99;
    }
    int any = p > first;
    if (*p == '.') {
        const char *point = ++p;
        for (; *p >= '0' && *p <= '9'; p++) {
            if (digits < 19) { m = m * 10 + (uint64_t)(*p - '0'); if (m) digits++; exponent--; }
            else digits = 99;
        }
        any = any || p > point;
    }
    if (any && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        int minus = *q == '-', e = 0;
        if (*q == '-' || *q == '+') q++;
        if (*q >= '0' && *q <= '9') {
            while (*q >= '0' && *q <= '9') { if (e < 10000) e = e * 10 + (*q - '0'); q++; }
            exponent += minus ? -e : e;
            p = q;
        }
    }
    if (any && digits <= 19 && (is_blank(*p) || is_end(*p)) && m <= (1ull << 53) && exponent >= -22 && exponent <= 22) {
        double v = (double)m;
        v = exponent < 0 ? v / TEN[-exponent] : v * TEN[exponent];
        *value = negative ? -v : v;
        *at = p;
        return 1;
    }
    while (!is_blank(*p) && !is_end(*p)) p++;
    *at = p;
    return read_slow(start, p, value);
}

/* Rows of at least `width` numbers, kept in out[n][width]: doubles where `real`, else int64. */
int scan_table(const char *buffer, int64_t size, int64_t *state, int64_t n, int64_t width, int64_t real, void *out) {
    const char *p = buffer + state[0], *end = buffer + size;
    double *reals = out;
    int64_t *integers = out, line = state[1];
    for (int64_t row = 0; row < n; row++) {
        state[4] = row;
        if (!next_row(&p, end, &line)) { state[0] = p - buffer; state[1] = line; return TOO_FEW; }
        const char *start = p;
        if (row == 0) state[2] = line;
        state[3] = line;
        for (int64_t k = row * width; k < (row + 1) * width; k++) {
            int got = real ? read_double(&p, reals + k) : read_int(&p, integers + k);
            if (got != 1) {
                state[0] = start - buffer;
                state[1] = line;
                return got == 0 ? SHORT_ROW : got == -2 ? RANGE : NOT_NUMBER;
            }
        }
        if (*p == '\0' && p < end) { state[0] = start - buffer; state[1] = line; return NOT_NUMBER; }
        p = end_row(p, end, &line);
    }
    state[0] = p - buffer;
    state[1] = line;
    state[4] = n;
    return OK;
}

/* Rows of any number of 32-bit integers (at most `limit` are kept); counts[n] and the flat entries. */
int scan_ragged(const char *buffer, int64_t size, int64_t *state, int64_t n, int64_t limit, int64_t capacity,
                uint8_t *counts, int32_t *out) {
    const char *p = buffer + state[0], *end = buffer + size;
    int64_t line = state[1], used = 0;
    for (int64_t row = 0; row < n; row++) {
        state[4] = row;
        state[5] = used;
        if (!next_row(&p, end, &line)) { state[0] = p - buffer; state[1] = line; return TOO_FEW; }
        const char *start = p;
        if (row == 0) state[2] = line;
        state[3] = line;
        if (used + limit > capacity) { state[0] = start - buffer; state[1] = line; return FULL; }
        int64_t count = 0;
        while (count < limit) {
            int64_t v;
            int got = read_int(&p, &v);
            if (got == 0) break;
            if (got < 0 || v > INT32_MAX || v < INT32_MIN) {
                state[0] = start - buffer;
                state[1] = line;
                return got == -1 ? NOT_NUMBER : RANGE;
            }
            out[used + count++] = (int32_t)v;
        }
        if (*p == '\0' && p < end) { state[0] = start - buffer; state[1] = line; return NOT_NUMBER; }
        used += count;
        counts[row] = (uint8_t)count;
        p = end_row(p, end, &line);
    }
    state[0] = p - buffer;
    state[1] = line;
    state[4] = n;
    state[5] = used;
    return OK;
}

static inline char *put_int(char *p, int64_t v) {
    char text[24];
    int n = 0;
    uint64_t u = v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v;
    do { text[n++] = (char)('0' + u % 10); u /= 10; } while (u);
    if (v < 0) *p++ = '-';
    while (n) *p++ = text[--n];
    return p;
}

/* Writes n rows "lead v0 v1 ... trail"; lead < 0 writes none, number >= 0 writes a running number at the
 * front (mode 1) or at the end (mode 2).  Returns the bytes written; out needs 21 (width + 2) n bytes. */
int64_t format_integers(const int32_t *values, int64_t n, int64_t width, int64_t lead, int64_t number, int64_t mode,
                        char *out) {
    char *p = out;
    for (int64_t row = 0; row < n; row++) {
        if (mode == 1) { p = put_int(p, number + row); *p++ = ' '; }
        if (lead >= 0) { p = put_int(p, lead); *p++ = ' '; }
        for (int64_t k = 0; k < width; k++) {
            p = put_int(p, values[row * width + k]);
            *p++ = ' ';
        }
        if (mode == 2) p = put_int(p, number + row);
        else p--;
        *p++ = '\n';
    }
    return p - out;
}

/* The shortest of 15 and 17 significant digits that reads back equal; out needs 26 (width + 1) n bytes. */
int64_t format_reals(const double *values, int64_t n, int64_t width, int64_t number, int64_t mode, char *out) {
    char *p = out;
    for (int64_t row = 0; row < n; row++) {
        if (mode == 1) { p = put_int(p, number + row); *p++ = ' '; }
        for (int64_t k = 0; k < width; k++) {
            double v = values[row * width + k], back = 0.0;
            int used = snprintf(p, 26, "%.15g", v);
            const char *q = p;
            if (read_double(&q, &back) != 1 || back != v) used = snprintf(p, 26, "%.17g", v);
            p += used;
            *p++ = ' ';
        }
        if (mode == 2) p = put_int(p, number + row);
        else p--;
        *p++ = '\n';
    }
    return p - out;
}
