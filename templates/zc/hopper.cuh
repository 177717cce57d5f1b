/* The device vocabulary of sm_90a: what templates for Hopper use beside zc/ptx.cuh. As there, this is the CUDA version,
 * and tests/hostcuda/hopper.cuh gives the same names their meaning on a CPU.
 *
 * Addresses of shared memory are numbers here (zc_smem_address): of the block's own memory, or of another block's of the
 * cluster (zc_cluster_address). Barriers are 8 bytes, aligned to 8. */
#ifndef ZC_HOPPER_CUH
#define ZC_HOPPER_CUH
#include "zc/wgmma.cuh"
#include "zc/wgmma_tile.cuh"
#include "abi/tensor_map.h"

/* unsigned char *name: the block's dynamic shared memory, 1024-byte aligned as swizzled tiles need it. */
#define ZC_SWIZZLED_SMEM(name)                                                                                         \
    extern __shared__ __align__(1024) unsigned char zc_swizzled_smem[];                                                \
    unsigned char *name = zc_swizzled_smem

/* ---- Roles: registers of a warpgroup's threads, in an entry whose launch bounds are known ---- */

template <int N> ZC_INLINE void zc_registers_drop() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> ZC_INLINE void zc_registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- Named barriers of a block, 1 to 15: `threads` of them meet, whole warps; arrive does not wait ---- */

ZC_INLINE void zc_named_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
ZC_INLINE void zc_named_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* ---- Clusters ---- */

ZC_INLINE u32 zc_cluster_rank() {
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
/* The same place in the memory of block `rank` of the cluster. */
ZC_INLINE u32 zc_cluster_address(u32 smem, u32 rank) {
    u32 r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(smem), "r"(rank));
    return r;
}
/* All threads of all blocks of the cluster meet: arrive, then wait. Relaxed: no order of memory accesses, for the
 * barriers' initialisation (after zc_barrier_fence) and to keep a block's memory until its partners are done. */
ZC_INLINE void zc_cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
ZC_INLINE void zc_cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
ZC_INLINE void zc_cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/* ---- Barriers in shared memory (mbarrier): a phase ends after `count` arrivals and all expected bytes ---- */

ZC_INLINE void zc_barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
/* Shows initialised barriers to the cluster and the copy engine. */
ZC_INLINE void zc_barrier_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
ZC_INLINE void zc_barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* On a barrier of any block of the cluster. It orders nothing for the other block: for slots that have been read. */
ZC_INLINE void zc_barrier_arrive_remote(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* Arrives, and adds to the bytes that the phase waits for. */
ZC_INLINE void zc_barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/* Returns when the phase of this parity (0 for the first) has ended. */
ZC_INLINE void zc_barrier_wait(u32 barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}
/* The same, when other blocks of the cluster wrote what it waits for. */
ZC_INLINE void zc_barrier_wait_cluster(u32 barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

/* ---- The copy engine (TMA): issued by one thread ----
 *
 * A load writes the map's box at these coordinates (innermost first; what lies outside is zero) to shared memory and
 * counts its bytes at a barrier: multicast at the same place and barrier in each block of `mask`. A store's source has
 * to be shown by zc_async_fence in the threads that wrote it, before they meet. */

ZC_INLINE void zc_tensor_prefetch(const zc_tensor_map *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 ::"r"(to), "l"(map), "r"(barrier), "r"(c0), "r"(c1)
                 : "memory");
}
ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}
ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2),
                 "r"(c3)
                 : "memory");
}
ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1, int c2, int c3, int c4) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2),
                 "r"(c3), "r"(c4)
                 : "memory");
}
/* Of a map of patches of images with one to three sides: lines from the window on that begins at `at` of the image, innermost
 * side first, each from c0 on, at the tap which lies so far behind where a window begins. */
ZC_INLINE void zc_patches_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, const int (&at)[1], int image,
                               const u16 (&tap)[1]) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(to), "l"(map), "r"(barrier), "r"(c0), "r"(at[0]),
                 "r"(image), "h"(tap[0])
                 : "memory");
}
ZC_INLINE void zc_patches_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, const int (&at)[2], int image,
                               const u16 (&tap)[2]) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to), "l"(map), "r"(barrier), "r"(c0), "r"(at[0]),
                 "r"(at[1]), "r"(image), "h"(tap[0]), "h"(tap[1])
                 : "memory");
}
ZC_INLINE void zc_patches_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, const int (&at)[3], int image,
                               const u16 (&tap)[3]) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(to), "l"(map), "r"(barrier), "r"(c0),
                 "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(image), "h"(tap[0]), "h"(tap[1]), "h"(tap[2])
                 : "memory");
}
ZC_INLINE void zc_tensor_multicast(u32 to, const zc_tensor_map *map, u32 barrier, u16 mask, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to), "l"(map), "r"(barrier), "h"(mask), "r"(c0), "r"(c1)
                 : "memory");
}
ZC_INLINE void zc_tensor_multicast(u32 to, const zc_tensor_map *map, u32 barrier, u16 mask, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5, %6}], [%2], %3;"
                 ::"r"(to), "l"(map), "r"(barrier), "h"(mask), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}
ZC_INLINE void zc_tensor_multicast(u32 to, const zc_tensor_map *map, u32 barrier, u16 mask, int c0, int c1, int c2, int c3,
                                   int c4) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;"
                 ::"r"(to), "l"(map), "r"(barrier), "h"(mask), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}
ZC_INLINE void zc_tensor_store(const zc_tensor_map *map, u32 from, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from),
                 "r"(c0), "r"(c1)
                 : "memory");
}
ZC_INLINE void zc_tensor_store(const zc_tensor_map *map, u32 from, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}
ZC_INLINE void zc_tensor_store(const zc_tensor_map *map, u32 from, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
/* Before zc_grid_wait: the next copy reads a constant of the plan, which no kernel writes. */
ZC_INLINE void zc_constant_load() { asm volatile("// zc: constant" ::: "memory"); }
/* `bytes` (of 16) from global memory, counted at a barrier; from shared memory to another block's, counted there. */
ZC_INLINE void zc_bulk_load(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
ZC_INLINE void zc_bulk_send(u32 to, u32 from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "r"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
/* Stores in groups, of the thread that issued them: wait until all but the newest N have read their source, have ended. */
ZC_INLINE void zc_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> ZC_INLINE void zc_bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
template <int N> ZC_INLINE void zc_bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
/* Shows ordinary writes to shared memory to the copy engine and the tensor cores. */
ZC_INLINE void zc_async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- Roles of warps ---- */

/* The thread's warpgroup, which the compiler then knows to be a warp's: what follows from it alone is computed once a warp. */
ZC_INLINE int zc_warpgroup() { return zc_shfl((int)(threadIdx.x / 128), 0); }
ZC_INLINE int zc_warp() { return zc_shfl((int)(threadIdx.x / 32), 0); }
/* True in one thread of a warp that is here as a whole. */
ZC_INLINE bool zc_elect() {
    u32 r;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(r));
    return r != 0;
}

ZC_INLINE void zc_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
ZC_INLINE void zc_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> ZC_INLINE void zc_wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

/* Four matrices of 8 rows of 16 bytes to shared memory, as zc_ldmatrix_x4 and, with _trans, zc_ldmatrix_x4_trans read them. */
#define ZC_STMATRIX_X4(name, op)                                                                                       \
    ZC_INLINE void name(u32 row, const u32 r[4]) {                                                                     \
        asm volatile("stmatrix.sync.aligned.m8n8.x4" op ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]),   \
                     "r"(r[1]), "r"(r[2]), "r"(r[3])                                                                   \
                     : "memory");                                                                                      \
    }
ZC_STMATRIX_X4(zc_stmatrix_x4, "")
ZC_STMATRIX_X4(zc_stmatrix_x4_trans, ".trans")
#undef ZC_STMATRIX_X4

#endif
