/* Memory bandwidth, after McCalpin's STREAM: copy by scalars and by vectors, and triad. REAL and WIDE are defined
   by the host: double and double2 or double4, or the same of float. */
__kernel void fl_copy_plain(__global const REAL *restrict a, __global REAL *restrict c, long n)
{
    const long i = get_global_id(0);
    if (i < n) c[i] = a[i];
}

__kernel void fl_copy_wide(__global const WIDE *restrict a, __global WIDE *restrict c, long n)
{
    const long i = get_global_id(0);
    if (i < n) c[i] = a[i];
}

__kernel void fl_triad(__global const REAL *restrict a, __global const REAL *restrict b, __global REAL *restrict c,
                       long n)
{
    const long i = get_global_id(0);
    if (i < n) c[i] = a[i] + (REAL)3 * b[i];
}
