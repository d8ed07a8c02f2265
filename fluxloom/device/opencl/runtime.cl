/* Sets every component of a global to one value: pointer, components, bytes of one, its bits. */
__kernel void fl_reset(__global uchar *target, long count, long size, long bits)
{
    const long k = get_global_id(0);
    if (k >= count) return;
    for (long byte = 0; byte < size; byte++) target[k * size + byte] = (uchar)(bits >> (8 * byte));
}

/* Sets a buffer to zero, 16 bytes an item. */
__kernel void fl_clear(__global uint4 *target, long count)
{
    const long k = get_global_id(0);
    if (k < count) target[k] = (uint4)(0);
}
