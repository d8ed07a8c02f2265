/* Words of functions that are not loops, in C. */
#define FL_GLOBAL
/* Number of the thread, in a parallel region. */
#ifdef _OPENMP
#define FL_THREAD omp_get_thread_num()
#else
#define FL_THREAD 0
#endif
#ifdef _OPENMP
#define FL_THREAD omp_get_thread_num()
#else
#define FL_THREAD 0
#endif
