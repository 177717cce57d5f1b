/* The blocks and threads that run now: shared by the scheduler and the instructions. */
#ifndef ZC_HOSTCUDA_KERNEL_RUN_H
#define ZC_HOSTCUDA_KERNEL_RUN_H

#include <string.h>

#include "fibers.h"
#include "state.h"

#define HC_MAX_THREADS    1024 /* of a block */
#define HC_GROUP          128  /* threads of a warpgroup */
#define HC_NAMED_BARRIERS 16
#define HC_BARRIERS       160 /* of a block, in shared memory */

/* What modules call. */
extern const zc_host_api hc_kernel_api;

/* A background copy that nobody has waited for. */
typedef struct hc_pending {
    void *dst;
    const void *src;
    unsigned valid, size, group, address;
    int line;
} hc_pending;

/* What a thread waits for, with the words for a message. */
#define HC_WAITS(X)                                                                                \
    X(RUNS, "nothing")                                                                             \
    X(AT_BARRIER, "the barrier")                                                                   \
    X(AT_WARP, "the warp's collective")                                                            \
    X(AT_NAMED, "a named barrier")                                                                 \
    X(AT_PHASE, "a barrier in shared memory")                                                      \
    X(AT_CLUSTER, "the cluster's barrier")                                                         \
    X(AT_GROUP, "the warpgroup's collective")                                                      \
    X(FOR_PRODUCTS, "the warpgroup's products")                                                    \
    X(FOR_REGISTERS, "registers")                                                                  \
    X(FOR_CHANGE, "a change of memory")                                                            \
    X(ENDED, "nothing, it has ended")

typedef enum hc_wait {
#define X(name, text) HC_##name,
    HC_WAITS(X)
#undef X
} hc_wait;

typedef struct hc_block hc_block;

/* What one knows of the block's barriers in shared memory: how many phases of each have ended. */
typedef struct hc_known {
    unsigned phases[HC_BARRIERS];
} hc_known;

typedef struct hc_thread {
    hc_block *block;
    unsigned index;
    hc_fiber *fiber;
    hc_wait wait;
    int line;               /* where it waits */
    unsigned tag;           /* which of the things of the kind it waits for */
    struct hc_thread *next; /* of those that can go on */
    hc_pending *pending;
    unsigned pending_count, pending_capacity, groups;
    bool loads_constant;  /* its next copy is of a constant: zc_constant_load */
    bool cluster_open;    /* has arrived at the cluster's barrier and not waited yet */
    bool at_cluster;      /* and the others have not */
    unsigned store_group; /* the open group of the copy engine's stores */
    /* The warpgroup's products: groups it closed, products it asked for, a fence since its last
     * wait. */
    unsigned product_group, products;
    bool product_fence;
    hc_known known;
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
    hc_known known;
} hc_warp;

typedef struct hc_named {
    unsigned threads, arrived, phase;
    unsigned warps; /* that have arrived, a bit each */
    int line;
    hc_known known;
} hc_named;

/* A barrier in shared memory, where only its mark lies. */
typedef struct hc_mbarrier {
    unsigned place, count, pending;
    unsigned phase; /* that is open: so many have ended */
    int64_t bytes;
    unsigned seen; /* phases that somebody has waited for */
    int vacuous;   /* line of a wait that returned before the first phase had ended; 0: none */
    bool copies;   /* it counts bytes */
    hc_known known;
    struct hc_turn *turns; /* of the cluster's threads */
} hc_mbarrier;

/* Sums of a warpgroup's products while these are under way; the registers hold none then. */
typedef struct hc_sums {
    struct hc_sums *next;
    float *d[HC_GROUP];
    unsigned columns, under_way[HC_GROUP], threads; /* products of each thread, threads with some */
    float v[64][256];                               /* by row and column of the product */
} hc_sums;

/* A product that all threads of a warpgroup have to ask for. */
typedef struct hc_product {
    zc_host_product p;
    unsigned group, seen;
    uint64_t operands; /* what they were when the first thread asked */
    bool done;         /* its sums are there */
    bool left;         /* others may write its operands */
    hc_sums *sums;
    const unsigned *held[HC_GROUP];   /* A in registers; NULL: in shared memory */
    unsigned was[HC_GROUP][4];        /* and what they were when their thread asked */
    const unsigned *places[HC_GROUP]; /* of a sparse A's elements; NULL: it is whole */
    unsigned word[HC_GROUP];          /* and what they were when their thread asked */
} hc_product;

/* A warp of a warpgroup: waits by itself. */
typedef struct hc_quarter {
    struct hc_group *group;
    unsigned waited, wanted; /* products that it has waited for; that it waits for */
    struct hc_quarter *next; /* of those that wait */
} hc_quarter;

typedef struct hc_group {
    unsigned arrived;
    zc_host_kind kind;
    int line;
    unsigned value;     /* what all have to agree on */
    unsigned registers; /* of each thread */
    hc_product *products;
    unsigned count, capacity;
    unsigned done; /* products before the first in the list */
    hc_quarter quarters[4];
    hc_sums *sums; /* all, also those not in use */
    hc_block *block;
} hc_group;

typedef struct hc_cluster {
    unsigned size;
    hc_block *blocks[HC_MAX_CLUSTER];
    unsigned started; /* blocks all of whose threads have begun */
    unsigned ended;   /* blocks */
    unsigned threads; /* that have not ended */
    unsigned arrived; /* of them, at the barrier */
    unsigned phase;
} hc_cluster;

struct hc_block {
    hc_cluster *cluster, own_cluster;
    unsigned rank;
    zc_host_dim bid;
    hc_block *next;               /* in a list of those not in use */
    unsigned started, ended;      /* threads */
    unsigned char *memory, *smem; /* as allocated, dynamic shared memory in it */
    unsigned char *fixed;         /* static shared memory, while another block runs */
    unsigned char *shown; /* what the copy engine and products see, from the first address on */
    bool watched[HC_MAX_CHUNKS]; /* chunks of dynamic shared memory that fences show */
    int *arriving;        /* of 16 bytes each: the line of a copy to them that is under way */
    bool grid_waited;     /* a thread has called zc_grid_wait */
    bool barriers_hidden; /* initialised since the last zc_barrier_fence */
    unsigned registers;   /* that no warpgroup holds, for one of its threads */
    unsigned at_barrier;
    int barrier_line;
    hc_mbarrier *barriers; /* in shared memory */
    unsigned barrier_count;
    hc_known known;                       /* by all who met */
    unsigned short order[HC_MAX_THREADS]; /* in which threads start and leave a barrier */
    hc_thread threads[HC_MAX_THREADS];
    hc_warp warps[HC_MAX_THREADS / 32];
    hc_named named[HC_NAMED_BARRIERS];
    hc_group warpgroups[HC_MAX_THREADS / HC_GROUP];
};

/* ---- The scheduler ---- */

/* The running thread and its warp. */
hc_thread *hc_thread_now(void);
hc_warp *hc_warp_now(void);
const zc_host_state *hc_state_now(void);
const hc_launch *hc_launch_now(void);
/* Threads of a block. */
unsigned hc_thread_count(void);
/* A number below; for orders that a seed decides. */
unsigned hc_draw(unsigned below);

/* Ends the launch with the code; prints where and why. Does not return. */
__attribute__((noreturn, format(printf, 3, 4))) void hc_fail(hc_result code, int line,
                                                             const char *format, ...);
/* The same for something that another thread began. */
__attribute__((noreturn, format(printf, 4, 5))) void hc_fail_of(const hc_thread *t, hc_result code,
                                                                int line, const char *format, ...);

/* The running thread goes on when it is woken. */
void hc_wait_for(hc_wait wait, unsigned tag, int line);
void hc_wake(hc_thread *t);
/* All of the block that wait for this. */
void hc_wake_all(hc_block *b, hc_wait wait, unsigned tag);
/* Copies from and to device memory come after zc_grid_wait where the launch may overlap with the
 * work ahead of it: fails when no thread of the block has called that, and the copy is of no
 * constant. */
void hc_check_grid_wait(int line);
/* With a seed, others sometimes go on here. */
void hc_maybe_yield(void);

/* All lanes meet; returns the buffer of this meeting. The last to arrive calls finish. */
unsigned hc_meet(zc_host_kind kind, int line, const void *in, unsigned size,
                 void (*finish)(hc_warp *w, unsigned turn));

/* ---- Shared memory, in shared_memory.c ---- */

/* Memory for a block; 0xFF bytes; false without. */
bool hc_memory_prepare(hc_block *b);
void hc_memory_free(hc_block *b);
/* The block's static shared memory comes into the module's section; NULL: nobody's. */
void hc_memory_enter(hc_block *b);
/* Whether [p, p + n) is shared memory of the running block. */
bool hc_is_shared(const void *p, size_t n);
unsigned hc_smem_address(const void *p, int line);
/* The block of an address: of the cluster of `of`, and still running. Fails otherwise. */
hc_block *hc_block_at(const hc_thread *of, unsigned address, int line);

#define HC_FIRST 1024u /* place of a block's memory: the system keeps what is before */
#define HC_PLACE ((1u << ZC_HOST_RANK_SHIFT) - 1)

/* The launch's, which is the same for all blocks. */
typedef struct hc_shared {
    unsigned char *section;  /* of the module: static memory of the block that is in there */
    unsigned fixed, dynamic; /* bytes of static memory; the place of dynamic memory */
    unsigned moving;         /* bytes of that */
    hc_block *entered;       /* whose static memory lies in the section */
} hc_shared;
extern hc_shared hc_shared_memory;

void hc_memory_begin(const hc_launch *l);
/* Fails: it is not there, or not aligned. */
__attribute__((noreturn)) void hc_memory_refuse(const hc_thread *of, unsigned address, unsigned n,
                                                bool there, unsigned align, int line);

/* n bytes of the block's shared memory, aligned to `align`; fails when they are not that. */
static inline void *hc_memory_at(const hc_thread *of, hc_block *b, unsigned address, unsigned n,
                                 unsigned align, int line)
{
    const hc_shared *m = &hc_shared_memory;
    unsigned place = address & HC_PLACE;
    unsigned char *p = NULL;
    if (place >= m->dynamic && n <= m->moving && place - m->dynamic <= m->moving - n)
        p = b->smem + (place - m->dynamic);
    else if (place >= HC_FIRST && n <= m->fixed && place - HC_FIRST <= m->fixed - n)
        p = (b == m->entered ? m->section : b->fixed) + (place - HC_FIRST);
    if (!p || address % align) hc_memory_refuse(of, address, n, p != NULL, align, line);
    return p;
}

/* The same bytes as the copy engine sees them. */
void *hc_shown_at(hc_block *b, unsigned address);
void hc_async_fence(void);
/* Fails when ordinary writes to these bytes have not been shown. */
void hc_check_shown(const hc_thread *of, hc_block *b, unsigned address, unsigned n, int line);
/* Fails when a copy to these bytes is under way. */
void hc_check_settled(const hc_thread *of, hc_block *b, unsigned address, unsigned n, int line);
/* A copy to n bytes (a multiple of 16) is under way: what they are is not known until it has
 * settled, and nobody may write them. By the copy engine, or by a thread. */
void hc_memory_await(const hc_thread *of, hc_block *b, unsigned address, unsigned n, bool engine,
                     int line);
void hc_memory_settle(const hc_thread *of, hc_block *b, unsigned address, unsigned n, int line);

/* A number that tells bytes from others; n is a multiple of 8. */
uint64_t hc_memory_sum(const void *p, size_t n);

/* ---- Barriers and clusters, in barriers.c ---- */

void hc_sync(int line);
void hc_named_barrier(zc_host_kind kind, int line, int barrier, int threads);
void hc_cluster_arrive(int line);
void hc_cluster_wait(int line);
void hc_cluster_thread_ends(hc_thread *t);
void hc_barrier_init(int line, unsigned barrier, unsigned count);
void hc_barrier_fence(void);
void hc_barrier_arrive(int line, unsigned barrier, unsigned bytes, int remote);
void hc_barrier_wait(int line, unsigned barrier, unsigned parity);
/* For the copy engine: the open phase of one that it can see, and the end of a copy that was asked
 * for in a phase. */
unsigned hc_barrier_check(const hc_thread *of, hc_block *b, unsigned barrier, int line);
void hc_barrier_complete(const hc_thread *of, hc_block *b, unsigned barrier, unsigned bytes,
                         unsigned phase, int line);
void hc_barriers_free(hc_block *b);
/* What the running thread knows of phases, others know; and it what they do. */
void hc_tell(hc_known *others);
void hc_learn(const hc_known *others);

/* ---- The copy engine, in copy_engine.c ---- */

void hc_tensor_prefetch(int line, const void *map);
void hc_load(const zc_host_copy *c);
void hc_store(const zc_host_copy *c);
void hc_store_commit(void);
void hc_store_wait(unsigned n, int read);
/* One copy to shared memory that is under way, if there is one. */
bool hc_copies_advance(void);
/* No copy may still read or write the block's memory. */
void hc_copies_block_ends(hc_block *b);
/* What is under way ends with the grid, or not at all. */
void hc_copies_finish(bool ok);

/* ---- Warpgroups, in warpgroup.c ---- */

void hc_registers(int line, int n, int take);
void hc_wgmma(const zc_host_product *p, const unsigned *held, float *d);
void hc_wgmma_fence(void);
void hc_wgmma_commit(void);
void hc_wgmma_wait(int line, unsigned n);
/* The products of one warp that waits for them, if all of its warpgroup have asked for them. */
bool hc_products_advance(void);
/* The running thread lets others write the operands of products that its warp has waited for. */
void hc_products_leave(void);
void hc_products_clear(void);
void hc_groups_prepare(hc_block *b);
void hc_groups_thread_ends(hc_thread *t);
void hc_groups_free(hc_block *b);

/* ---- Numbers ---- */

static inline float hc_bits_to_f32(unsigned bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline unsigned hc_f32_to_bits(float v)
{
    unsigned bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float hc_f16_value(unsigned bits)
{
    unsigned sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return hc_bits_to_f32(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    /* The exponent's field has moved, and is 112 too low; subnormals come out right, too. */
    return hc_bits_to_f32(sign | hc_f32_to_bits(hc_bits_to_f32(magnitude << 13) * 0x1p112f));
}

static inline float hc_bf16_value(unsigned bits)
{
    return hc_bits_to_f32(bits << 16);
}

/* ---- Instructions of a warp, in instructions.c ---- */

void hc_mma(zc_host_kind kind, int line, void *d, const unsigned *a, const unsigned *b);
void hc_mma_sparse(zc_host_kind kind, int line, float *d, const unsigned *a, const unsigned *b,
                   unsigned places, unsigned second);
/* Where the two elements stand that a sparse A's row stores of four neighbours, by their four bits;
 * places that no tensor core takes fail t's launch. */
void hc_places(const hc_thread *t, int line, unsigned row, unsigned bits, unsigned place[2]);
void hc_aligned(int line, const void *p, unsigned bytes);
void hc_ldmatrix(zc_host_kind kind, int line, unsigned *r, const void *row);
void hc_stmatrix(zc_host_kind kind, int line, unsigned row, const unsigned *r);
void hc_cp_async(int line, void *smem, const void *global, unsigned valid, unsigned size);
void hc_cp_async_commit(void);
void hc_cp_async_wait(int n);

#endif
