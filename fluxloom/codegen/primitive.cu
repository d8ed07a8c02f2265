/* Words of functions that are not loops, in CUDA. */
#define FL_GLOBAL
#define FL_SHARED __shared__
#define FL_BARRIER() __syncthreads()
#define FL_GROUP ((int64_t)blockIdx.x)
#define FL_MEMBER ((int)threadIdx.x)
#define FL_ITEM ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define FL_UNROLL _Pragma("unroll")
#define FL_SIMD
#define FL_ATOMIC_MAX(place, value) atomicMax((int *)(place), value)
