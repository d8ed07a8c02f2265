/* Fixed part of every generated CUDA unit. */
#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
typedef long long int64_t;
typedef int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT8_MAX 255
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif
#ifdef FL_HALF
#include <cuda_fp16.h>
#define _Float16 __half
#endif
/* Neighbouring numbers that one access moves. */
template <typename T, int N> struct alignas(N * sizeof(T)) fl_several { T v[N]; };

#ifdef __HIPCC_RTC__
#define FL_AFRESH(x) asm volatile("" : "+v"(x))
#else
#define FL_AFRESH(x) asm volatile("" : "+r"(x))
#endif
#define AI static __device__ __forceinline__

AI void fl_atomic_add_double(double *p, double v) { atomicAdd(p, v); }
AI void fl_atomic_add_float(float *p, float v) { atomicAdd(p, v); }
AI void fl_atomic_add_int32_t(int32_t *p, int32_t v) { atomicAdd(p, v); }
AI void fl_atomic_add_int64_t(int64_t *p, int64_t v) {
    atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
AI double fl_down_double(double v, int h) { return __shfl_down_sync(0xffffffffu, v, h); }
AI int64_t fl_down_int64_t(int64_t v, int h) { return __shfl_down_sync(0xffffffffu, v, h); }
AI double fl_swap_double(double v, int h, int width) { return __shfl_xor_sync(0xffffffffu, v, h, width); }
AI float fl_swap_float(float v, int h, int width) { return __shfl_xor_sync(0xffffffffu, v, h, width); }
AI int64_t fl_swap_int64_t(int64_t v, int h, int width) { return __shfl_xor_sync(0xffffffffu, v, h, width); }

/* Rows of two vectors: lanes exchange halves in pairs, so that each store fills whole sectors of memory. */
#define FL_STORE_ROWS(T, V, N)                                                                          \
    AI void fl_store_pair_##T(V *row, int i, bool whole, V low, V high) {                               \
        if (!whole) {                                                                                   \
            row[0] = low;                                                                               \
            row[1] = high;                                                                              \
            return;                                                                                     \
        }                                                                                               \
        const bool odd = i & 1;                                                                         \
        V mine = odd ? low : high;                                                                      \
        for (int k = 0; k < N; k++) (&mine.x)[k] = __shfl_xor_sync(0xffffffffu, (&mine.x)[k], 1);       \
        V *const even = row - 2 * odd;                                                                  \
        even[odd] = odd ? mine : low;                                                                   \
        even[2 + odd] = odd ? high : mine;                                                              \
    }
FL_STORE_ROWS(double, double2, 2)
FL_STORE_ROWS(float, float4, 4)
AI void fl_store_rows_4_double(double *d, int64_t i, bool whole, double a, double b, double c, double e) {
    fl_store_pair_double((double2 *)d + 2 * i, (int)i, whole, make_double2(a, b), make_double2(c, e));
}
AI void fl_store_rows_8_float(
    float *d, int64_t i, bool whole, float a, float b, float c, float e, float f, float g, float h, float p) {
    fl_store_pair_float((float4 *)d + 2 * i, (int)i, whole, make_float4(a, b, c, e), make_float4(f, g, h, p));
}
