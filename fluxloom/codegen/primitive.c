/* Words of functions that are not loops, in C, where a group has one member. */
#define FL_GLOBAL
#define FL_SHARED
#define FL_BARRIER()
#define FL_MEMBER 0
#define FL_SIMD _Pragma("omp simd")
/* Number of the thread, in a parallel region. */
#ifdef _OPENMP
#define FL_THREAD omp_get_thread_num()
#else
#define FL_THREAD 0
#endif
