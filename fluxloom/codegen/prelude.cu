/* Fixed part of every generated CUDA unit. */
#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
typedef long long int64_t;
typedef int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
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
#define AI static __device__ __forceinline__

AI void fl_atomic_add_double(double *p, double v) { atomicAdd(p, v); }
AI void fl_atomic_add_float(float *p, float v) { atomicAdd(p, v); }
AI void fl_atomic_add_int32_t(int32_t *p, int32_t v) { atomicAdd(p, v); }
AI void fl_atomic_add_int64_t(int64_t *p, int64_t v) {
    atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
#ifdef FL_HALF
AI void fl_atomic_add__Float16(__half *p, __half v) { atomicAdd(p, v); }
#endif
AI double fl_down_double(double v, int h) { return __shfl_down_sync(0xffffffffu, v, h); }
AI int64_t fl_down_int64_t(int64_t v, int h) { return __shfl_down_sync(0xffffffffu, v, h); }
AI double fl_swap_double(double v, int h, int width) { return __shfl_xor_sync(0xffffffffu, v, h, width); }
AI float fl_swap_float(float v, int h, int width) { return __shfl_xor_sync(0xffffffffu, v, h, width); }
AI int64_t fl_swap_int64_t(int64_t v, int h, int width) { return __shfl_xor_sync(0xffffffffu, v, h, width); }
