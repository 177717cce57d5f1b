/* The threads of the block that runs now: shared by the scheduler and the instructions. */
#ifndef ZC_HOSTCUDA_KERNEL_RUN_H
#define ZC_HOSTCUDA_KERNEL_RUN_H

#include "fibers.h"
#include "state.h"

/* What modules call. */
extern const zc_host_api hc_kernel_api;

/* A background copy that nobody has waited for. */
typedef struct hc_pending {
    void *dst;
    const void *src;
    unsigned valid, size, group;
} hc_pending;

typedef enum hc_wait { HC_RUNS, HC_AT_BARRIER, HC_AT_WARP, HC_ENDED } hc_wait;

typedef struct hc_thread {
    hc_fiber *fiber;
    hc_wait wait;
    int line; /* of the barrier or collective it waits in */
    hc_pending *pending;
    unsigned pending_count, pending_capacity, groups;
} hc_thread;

/* Two buffers: a lane may enter the next collective while others still read the last. */
typedef struct hc_warp {
    unsigned present, arrived;
    zc_host_kind kind;
    int line;
    unsigned turn;
    zc_host_lanes lanes[2];
    union {
        double f[16][8];
        unsigned r[32][4];
    } result[2];
} hc_warp;

/* The running thread and its warp. */
hc_thread *hc_thread_now(void);
hc_warp *hc_warp_now(void);
const zc_host_state *hc_state_now(void);

/* Whether [p, p + n) is shared memory of the block. */
bool hc_is_shared(const void *p, size_t n);

/* Ends the launch with the code; prints where and why. Does not return. */
__attribute__((noreturn, format(printf, 3, 4))) void hc_fail(hc_result code, int line,
                                                             const char *format, ...);

/* All lanes meet; returns the buffer of this meeting. The last to arrive calls finish. */
unsigned hc_meet(zc_host_kind kind, int line, const void *in, unsigned size,
                 void (*finish)(hc_warp *w, unsigned turn));

/* The instructions, in instructions.c. */
void hc_mma(zc_host_kind kind, int line, void *d, const unsigned *a, const unsigned *b);
void hc_ldmatrix(zc_host_kind kind, int line, unsigned *r, const void *row);
void hc_cp_async(void *smem, const void *global, unsigned valid, unsigned size);
void hc_cp_async_commit(void);
void hc_cp_async_wait(int n);

#endif
