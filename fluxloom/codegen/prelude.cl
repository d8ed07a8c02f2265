/* Fixed part of every generated OpenCL unit. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#else
#define FL_NO_DOUBLE
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define _Float16 half
#define _Float162 half2
#define _Float164 half4
#endif
typedef long int64_t;
typedef int int32_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define AI static inline
#define INT64_C(x) x##L
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT8_MAX 255
#define fmodf fmod
#define floorf floor
#define fabsf fabs
#define sqrtf sqrt
#define truncf trunc

/* Additions of reals by compare-and-swap on their bits; without 64-bit atomics those of 8 bytes do not exist. */
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#ifdef cl_khr_fp64
AI void fl_atomic_add_double(volatile __global double *p, double v) {
    volatile __global ulong *const bits = (volatile __global ulong *)p;
    ulong old = *bits, seen;
    while ((seen = atom_cmpxchg(bits, old, as_ulong(as_double(old) + v))) != old) old = seen;
}
#endif
AI void fl_atomic_add_int64_t(volatile __global long *p, long v) { atom_add(p, v); }
#endif
AI void fl_atomic_add_float(volatile __global float *p, float v) {
    volatile __global uint *const bits = (volatile __global uint *)p;
    uint old = *bits, seen;
    while ((seen = atomic_cmpxchg(bits, old, as_uint(as_float(old) + v))) != old) old = seen;
}
AI void fl_atomic_add_int32_t(volatile __global int *p, int v) { atomic_add(p, v); }
