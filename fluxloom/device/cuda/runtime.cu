/* Sets every component of a global to one value: address, components, bytes of one, its bits. */
extern "C" __global__ void fl_reset(long long target, long long count, long long size, long long bits)
{
    const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    unsigned char *const place = (unsigned char *)target + k * size;
    for (long long byte = 0; byte < size; byte++) place[byte] = (unsigned char)(bits >> (8 * byte));
}
