/* Python's semantics where C differs: reals as NumPy's float64, integers that wrap round. */
#define FL_REAL(T, FMOD, FLOOR, FABS, SQRT, TRUNC)                                           \
    AI T fl_min_##T(T a, T b) { return b < a ? b : a; }                                      \
    AI T fl_max_##T(T a, T b) { return b > a ? b : a; }                                      \
    AI T fl_abs_##T(T a) { return FABS(a); }                                                 \
    AI T fl_sign_##T(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); }                    \
    AI int fl_isnan_##T(T a) { return a != a; }                                              \
    AI int fl_isfinite_##T(T a) { return a - a == 0; }                                       \
    AI int fl_isinf_##T(T a) { return a == a && a - a != 0; }                                \
    /* a to the power 0.5 */                                                                 \
    AI T fl_root_##T(T a) { return a < 0 && a - a != 0 ? FABS(a) : SQRT(a) + (T)0; }         \
    /* The smallest integer stands for what has no whole part of 64 bits. gcc takes (T)(int64_t)a for TRUNC(a), */ \
    /* which may be -0: so a is what has no -0. */                                           \
    AI int64_t fl_int_##T(T a) {                                                             \
        T w = TRUNC(a) + (T)0;                                                               \
        return w >= -(T)9223372036854775808.0f && w < (T)9223372036854775808.0f ? (int64_t)w : INT64_MIN; \
    }                                                                                        \
    AI T fl_mod_##T(T a, T b) {                                                              \
        T m = FMOD(a, b);                                                                    \
        return m != 0 ? ((b < 0) != (m < 0) ? m + b : m) : (b < 0 ? -(T)0 : (T)0);           \
    }                                                                                        \
    AI T fl_floordiv_##T(T a, T b) {                                                         \
        if (b == 0) return a / b;                                                            \
        T m = FMOD(a, b);                                                                    \
        T d = (a - m) / b;                                                                   \
        if (m != 0 && ((b < 0) != (m < 0))) d -= 1;                                          \
        if (d != d) return d; /* PoCL's floor of a constant NaN is not defined */            \
        if (d == 0) return a != 0 ? (T)0 : b < 0 ? -a : a;                                   \
        T f = FLOOR(d);                                                                      \
        return d - f > (T)0.5 ? f + 1 : f;                                                   \
    }
#ifndef FL_NO_DOUBLE
FL_REAL(double, fmod, floor, fabs, sqrt, trunc)
#endif
FL_REAL(float, fmodf, floorf, fabsf, sqrtf, truncf)

AI int64_t fl_min_int64_t(int64_t a, int64_t b) { return b < a ? b : a; }
AI int64_t fl_max_int64_t(int64_t a, int64_t b) { return b > a ? b : a; }
/* Overflow is undefined in C: sums and products of signed integers go through unsigned ones. */
AI int64_t fl_add_int64_t(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
AI int64_t fl_sub_int64_t(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
AI int64_t fl_mul_int64_t(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
AI int64_t fl_neg_int64_t(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
AI int64_t fl_abs_int64_t(int64_t a) { return a < 0 ? fl_neg_int64_t(a) : a; }
AI int64_t fl_sign_int64_t(int64_t a) { return (a > 0) - (a < 0); }
/* Division by zero gives zero, as in NumPy; it and that of the smallest integer by -1 would end the process in C. */
AI int64_t fl_mod_int64_t(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    int64_t m = a % b;
    return m != 0 && ((m < 0) != (b < 0)) ? m + b : m;
}
AI int64_t fl_floordiv_int64_t(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return fl_neg_int64_t(a);
    int64_t q = a / b;
    return q * b != a && ((a < 0) != (b < 0)) ? q - 1 : q;
}
AI int64_t fl_wrap(int64_t i, int64_t n) { return i < 0 ? i + n : (i >= n ? i - n : i); }
