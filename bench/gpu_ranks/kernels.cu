/* What check.py packs, compares and does meanwhile. */
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define FL_ITEM ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)

__device__ uint64_t mix(int64_t rank, int64_t step, int64_t i)
{
    uint64_t x = (uint64_t)i + 0x9E3779B97F4A7C15ull * (uint64_t)(step + 1) + 0xC2B2AE3D27D4EB4Full * (uint64_t)(rank + 1);
    x ^= x >> 30; x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 27);
}

extern "C" __global__ void fl_tick(int64_t *step) { if (FL_ITEM == 0) step[0] += 1; }

extern "C" __global__ void fl_pack(uint64_t *out, const int64_t *step, int64_t n, int64_t rank)
{
    const int64_t i = FL_ITEM;
    if (i < n) out[i] = mix(rank, step[0], i);
}

extern "C" __global__ void fl_check(const uint64_t *into, const int64_t *step, int64_t n, int64_t rank, int *wrong)
{
    const int64_t i = FL_ITEM;
    if (i < n && into[i] != mix(rank, step[0], i)) atomicAdd(wrong, 1);
}

extern "C" __global__ void fl_unpack(const uint64_t *into, int64_t n, uint64_t *used)
{
    const int64_t i = FL_ITEM;
    if (i < n) used[i] = into[i];
}

extern "C" __global__ void fl_work(double *a, int64_t n, int64_t rounds)
{
    const int64_t i = FL_ITEM;
    if (i >= n) return;
    double x = a[i];
    for (int64_t k = 0; k < rounds; k++) x = 0.999 * x + 0.001;
    a[i] = x;
}
