/* What a kernel module compiled for the host and the fake driver know of each other. Plain C that
 * is also C++, without any other header: kernels include it through ptx.cuh. */
#ifndef ZC_HOSTCUDA_ABI_H
#define ZC_HOSTCUDA_ABI_H

#define ZC_HOST_ABI_VERSION 4
#define ZC_HOST_SLOT        40 /* bytes a lane can give to an exchange */

typedef struct zc_host_dim {
    unsigned x, y, z;
} zc_host_dim;

/* The thread that runs now: one copy in each module, kept up to date by the driver. */
typedef struct zc_host_state {
    zc_host_dim tid, bid, bdim, gdim;
    unsigned lane;
    unsigned cluster_rank;
    unsigned patience;   /* vain looks at memory until others may go on */
    unsigned char *smem; /* dynamic shared memory */
} zc_host_state;

#define ZC_HOST_RANK_SHIFT                                                                         \
    24 /* addresses of shared memory: the block's rank, the place in its memory */

/* What each lane gave to an exchange; 0xFF bytes for lanes that do not exist. */
typedef struct zc_host_lanes {
    unsigned present; /* bit l: lane l exists */
    unsigned char slot[32][ZC_HOST_SLOT];
} zc_host_lanes;

/* Collectives: all lanes of a warp must meet in the same one, told apart by kind and source line.
 */
typedef enum zc_host_kind {
    ZC_HOST_SYNC_WARP,
    ZC_HOST_SHFL,
    ZC_HOST_BALLOT,
    ZC_HOST_MMA_F16,
    ZC_HOST_MMA_BF16,
    ZC_HOST_MMA_TF32,
    ZC_HOST_MMA_S8,
    ZC_HOST_MMA_S8U8,
    ZC_HOST_MMA_U8S8,
    ZC_HOST_MMA_U8U8,
    ZC_HOST_LDMATRIX_X2,
    ZC_HOST_LDMATRIX_X2_TRANS,
    ZC_HOST_LDMATRIX_X4,
    ZC_HOST_LDMATRIX_X4_TRANS,
    ZC_HOST_STMATRIX_X4,
    ZC_HOST_STMATRIX_X4_TRANS,
    ZC_HOST_NAMED_SYNC,
    ZC_HOST_NAMED_ARRIVE,
    ZC_HOST_REGISTERS,
    ZC_HOST_WGMMA_WAIT,
    ZC_HOST_WGMMA_F16,
    ZC_HOST_WGMMA_BF16,
    ZC_HOST_WGMMA_TF32,
    ZC_HOST_WGMMA_E4M3,
    ZC_HOST_WGMMA_S8, /* integers are last */
    ZC_HOST_WGMMA_S8U8,
    ZC_HOST_WGMMA_U8S8,
    ZC_HOST_WGMMA_U8
} zc_host_kind;

/* A product of a warpgroup, as one thread asks for it. */
typedef struct zc_host_product {
    zc_host_kind kind;
    int line;
    unsigned columns;
    int across_a, across, add;
    unsigned long long a, b;
    int sparse; /* 0: A is whole; else one more than which threads say where its elements stand */
    const unsigned *places; /* this thread's word of that */
} zc_host_product;

/* What the copy engine is asked to do; addresses of shared memory are numbers. */
typedef struct zc_host_copy {
    int line;
    unsigned smem, barrier;
    const void *map; /* or NULL: `bytes` of `global` or of `source` */
    unsigned rank;   /* coordinates */
    int at[5];       /* innermost first */
    unsigned taps;   /* of patches: sides, and where the tap lies on each; 0: a box */
    unsigned tap[3];
    unsigned multicast; /* the cluster's blocks that receive it; 0: the one of `smem` */
    const void *global;
    unsigned source, bytes;
} zc_host_copy;

typedef struct zc_host_api {
    void (*sync)(int line);
    /* Valid until this thread's next exchange. */
    const zc_host_lanes *(*exchange)(zc_host_kind kind, int line, const void *in, unsigned size);
    void (*mma)(zc_host_kind kind, int line, void *d, const unsigned *a, const unsigned *b);
    /* second: which lanes say where a's elements stand */
    void (*mma_sparse)(zc_host_kind kind, int line, float *d, const unsigned *a, const unsigned *b,
                       unsigned places, unsigned second);
    void (*ldmatrix)(zc_host_kind kind, int line, unsigned *r, const void *row);
    void (*cp_async)(int line, void *smem, const void *global, unsigned valid, unsigned size);
    void (*cp_async_commit)(void);
    void (*cp_async_wait)(int n);

    void (*yield)(void);
    unsigned long long (*clock_ns)(void);
    void (*grid_wait)(void);
    void (*constant_load)(void);
    unsigned (*smem_address)(const void *smem, int line);
    void (*aligned)(int line, const void *p, unsigned bytes);
    void (*stmatrix)(zc_host_kind kind, int line, unsigned row, const unsigned *r);
    void (*named)(zc_host_kind kind, int line, int barrier, int threads);
    void (*registers)(int line, int n, int take);
    void (*cluster_arrive)(int line);
    void (*cluster_wait)(int line);
    void (*barrier_init)(int line, unsigned barrier, unsigned count);
    void (*barrier_fence)(void);
    /* remote: a barrier of any block of the cluster */
    void (*barrier_arrive)(int line, unsigned barrier, unsigned bytes, int remote);
    void (*barrier_wait)(int line, unsigned barrier, unsigned parity);
    void (*tensor_prefetch)(int line, const void *map);
    void (*load)(const zc_host_copy *c);
    void (*store)(const zc_host_copy *c);
    void (*store_commit)(void);
    void (*store_wait)(unsigned n, int read);
    void (*async_fence)(void);
    /* held: the thread's registers of A; NULL: it lies where p->a says */
    void (*wgmma)(const zc_host_product *p, const unsigned *held, float *d);
    void (*wgmma_fence)(void);
    void (*wgmma_commit)(void);
    void (*wgmma_wait)(int line, unsigned n);
} zc_host_api;

typedef struct zc_host_kernel {
    const char *name;
    void (*run)(void **params); /* one thread; params[i] points to parameter i */
    const unsigned *sizes;      /* of the parameters */
    unsigned count;
    unsigned max_threads; /* of a block: __launch_bounds__, 1024 without */
} zc_host_kernel;

typedef struct zc_host_module {
    unsigned abi;
    unsigned arch; /* 90 for sm_90 and sm_90a */
    zc_host_state *state;
    const zc_host_kernel *kernels;
    unsigned kernel_count;
    unsigned char *shared_begin, *shared_end; /* all static shared memory */
} zc_host_module;

/* The one symbol a module exports: takes the driver's functions, describes the module. */
#define ZC_HOST_BIND "zc_hostcuda_bind"
typedef const zc_host_module *zc_host_bind_fn(const zc_host_api *api);

#endif
