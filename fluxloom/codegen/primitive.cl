/* Words of functions that are not loops, in OpenCL. */
#define FL_GLOBAL __global
#define FL_SHARED __local
#define FL_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define FL_GROUP ((int64_t)get_group_id(0))
#define FL_MEMBER ((int)get_local_id(0))
#define FL_ITEM ((int64_t)get_global_id(0))
#define FL_UNROLL __attribute__((opencl_unroll_hint))
#define FL_SIMD
#define FL_ATOMIC_MAX(place, value) atomic_max((volatile __global int *)(place), value)
