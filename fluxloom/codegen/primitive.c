/* Words of functions that are not loops, in C. */
#define FL_GLOBAL
