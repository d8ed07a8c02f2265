/* Messages and sums between GPUs that write into each other's memory. Every rank has a block that the others
   write to: flags, one a sender, and places for what they send, twice: what is sent the n-th time lies in the half
   n mod 2, so that it is not overwritten before it was read (design/012).

   A state is: times sent, groups that have come to their end. The alarm is a word of the host: once it is not 0,
   nobody waits any more. */

enum { FL_SENT, FL_ARRIVED };

static __device__ __forceinline__ void fl_raise(long long flag, long long value)
{
    asm volatile("st.release.sys.global.s64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

static __device__ __forceinline__ long long fl_look(long long flag)
{
    long long value;
    asm volatile("ld.acquire.sys.global.s64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    return value;
}

static __device__ __forceinline__ unsigned long long fl_nanoseconds(void)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Waits until a flag has come to a value, for `patience` nanoseconds at most (0: until it has). */
static __device__ void fl_await(long long flag, long long value, long long alarm, long long patience)
{
    unsigned long long begin = 0;
    for (unsigned int turn = 1; fl_look(flag) < value; turn++) {
        if (turn & 1023u) continue;
        if (*(volatile long long *)alarm) return;
        if (!begin) begin = fl_nanoseconds();
        if (patience && fl_nanoseconds() - begin > (unsigned long long)patience) *(volatile long long *)alarm = 1;
    }
}

/* Writes messages to other GPUs. A row of the table is one: source, place in the first half there, bytes to the
   second half, words, and the flag there. */
extern "C" __global__ void __launch_bounds__(256) fl_peer_send(long long states, long long rows, long long count)
{
    volatile long long *const state = (volatile long long *)states;
    const long long *const table = (const long long *)rows;
    const long long sent = state[FL_SENT] + 1;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long m = 0; m < count; m++) {
        const long long *const row = table + 5 * m;
        const long long *const from = (const long long *)row[0];
        long long *const to = (long long *)(row[1] + (sent & 1) * row[2]);
        const long long words = row[3];
        for (long long k = first; k < words; k += step) to[k] = from[k];
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        const long long before = (long long)atomicAdd((unsigned long long *)&state[FL_ARRIVED], 1ull);
        if (before == (long long)gridDim.x - 1) {
            __threadfence_system();
            state[FL_ARRIVED] = 0;
            state[FL_SENT] = sent;
            for (long long m = 0; m < count; m++) fl_raise(table[5 * m + 4], sent);
        }
    }
}

/* Waits for the messages of as many other GPUs and copies them from the halves of the block to where they are
   wanted. A row of the table is one: target, place in the first half, bytes to the second, words, and the flag. */
extern "C" __global__ void __launch_bounds__(256)
    fl_peer_receive(long long states, long long rows, long long count, long long alarm, long long patience)
{
    volatile long long *const state = (volatile long long *)states;
    const long long *const table = (const long long *)rows;
    const long long sent = state[FL_SENT];
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long m = 0; m < count; m++) {
        const long long *const row = table + 5 * m;
        if (threadIdx.x == 0) fl_await(row[4], sent, alarm, patience);
        __syncthreads();
        long long *const to = (long long *)row[0];
        const long long *const from = (const long long *)(row[1] + (sent & 1) * row[2]);
        const long long words = row[3];
        for (long long k = first; k < words; k += step) to[k] = __ldcg(from + k);
    }
}

enum { FL_SUM, FL_MIN, FL_MAX };

#define FL_COMBINE(type)                                                                                             \
    {                                                                                                                \
        long long word = __ldcg(mine + value);                                                                       \
        type total = *(const type *)&word;                                                                           \
        for (long long rank = 1; rank < ranks; rank++) {                                                             \
            word = __ldcg(mine + rank * values + value);                                                             \
            const type other = *(const type *)&word;                                                                 \
            if (operation == FL_SUM) total = total + other;                                                          \
            else if (operation == FL_MIN) total = (other < total || other != other) ? other : total;                 \
            else total = (other > total || other != other) ? other : total;                                          \
        }                                                                                                            \
        *(type *)target = total;                                                                                     \
    }

/* Combines values of all ranks, in the order of the ranks, so that all get the same bits; one group of work items.
   A row of `rows` is one value: address, kind (0: float64, 1: float32, 2: int64, 3: int32) and operation. A row of
   `boxes` is one rank: where this rank's values go there in the first half, and the flag there. `mine` is the block
   of this rank: a flag a rank, then two halves, each with the values of every rank. */
extern "C" __global__ void __launch_bounds__(256)
    fl_peer_total(long long states, long long rows, long long values, long long boxes, long long ranks,
                  long long flags, long long halves, long long half, long long alarm, long long patience)
{
    volatile long long *const state = (volatile long long *)states;
    const long long *const table = (const long long *)rows, *const there = (const long long *)boxes;
    const long long sent = state[FL_SENT] + 1, begin = (sent & 1) * half;
    for (long long k = threadIdx.x; k < values * ranks; k += blockDim.x) {
        const long long *const row = table + 3 * (k % values);
        const long long wide = row[1] == 0 || row[1] == 2;
        long long word = 0;
        if (wide) word = *(const long long *)row[0];
        else *(int *)&word = *(const int *)row[0];
        *(long long *)(there[2 * (k / values)] + begin + 8 * (k % values)) = word;
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) state[FL_SENT] = sent;
    for (long long rank = threadIdx.x; rank < ranks; rank += blockDim.x) {
        __threadfence_system();
        fl_raise(there[2 * rank + 1], sent);
    }
    for (long long rank = threadIdx.x; rank < ranks; rank += blockDim.x)
        fl_await(flags + 8 * rank, sent, alarm, patience);
    __syncthreads();
    const long long *const mine = (const long long *)(halves + begin);
    for (long long value = threadIdx.x; value < values; value += blockDim.x) {
        const long long *const row = table + 3 * value, target = row[0], operation = row[2];
        if (row[1] == 0) FL_COMBINE(double)
        else if (row[1] == 1) FL_COMBINE(float)
        else if (row[1] == 2) FL_COMBINE(long long)
        else FL_COMBINE(int)
    }
}
