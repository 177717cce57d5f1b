/* A kernel that uses everything that hopper.cuh offers: it must compile with both versions. */
#include "zc/hopper.cuh"

ZC_WGMMA(narrow, 8, F16, 0)
ZC_WGMMA(wide, 256, BF16, 1)
ZC_WGMMA_ALONG(narrow_tf32, 8, TF32)
ZC_WGMMA_ALONG(narrow_e4m3, 8, E4M3)
ZC_WGMMA_ALONG(narrow_s8, 8, S8)
ZC_WGMMA_ALONG(narrow_s8u8, 8, S8U8)
ZC_WGMMA_ALONG(narrow_u8s8, 8, U8S8)
ZC_WGMMA_ALONG(narrow_u8, 8, U8)
ZC_WGMMA_ACROSS(both, 8, F16, 1, 0)
ZC_WGMMA_HELD(held, 8, F16, 1)
ZC_WGMMA_HELD_ALONG(held_e4m3, 8, E4M3)
ZC_WGMMA_HELD_ALONG(held_s8, 8, S8)
ZC_WGMMA_SPARSE(sparse, 8, F16, 0)
ZC_WGMMA_SPARSE(sparse_wide, 256, BF16, 1)

extern "C" __global__ void __launch_bounds__(256)
    every_hopper(u32 *u, const f32 *f, const __grid_constant__ zc_tensor_map map)
{
    ZC_DYNAMIC_SMEM(memory);
    const u32 tile = (zc_smem_address(memory) + 1023) & ~1023u, barrier = tile + 65536;
    const u32 other = zc_cluster_address(barrier, zc_cluster_rank() ^ 1);
    zc_grid_wait();
    if (threadIdx.x == 0) {
        zc_tensor_prefetch(&map);
        zc_barrier_init(barrier, 128);
        zc_barrier_fence();
    }
    zc_cluster_arrive();
    zc_cluster_wait();
    zc_cluster_arrive_relaxed();
    zc_cluster_wait();
    zc_barrier_arrive(barrier);
    zc_barrier_arrive_remote(other);
    zc_barrier_expect(barrier, 1024);
    zc_barrier_wait(barrier, 0);
    zc_barrier_wait_cluster(barrier, 1);
    if (threadIdx.x < 128) {
        zc_registers_drop<32>();
        zc_named_arrive(1, 256);
        zc_tensor_load(tile, &map, barrier, 0, 1);
        zc_tensor_load(tile, &map, barrier, 0, 1, 2);
        zc_tensor_load(tile, &map, barrier, 0, 1, 2, 3, 4);
        zc_tensor_multicast(tile, &map, barrier, 3, 0, 1, 2, 3, 4);
        zc_tensor_multicast(tile, &map, barrier, 3, 0, 1);
        zc_tensor_multicast(tile, &map, barrier, 3, 0, 1, 2);
        zc_bulk_load(tile, u, 64, barrier);
        zc_bulk_send(zc_cluster_address(tile, 0), tile, 64, other);
        zc_tensor_store(&map, tile, 0, 1);
        zc_tensor_store(&map, tile, 0, 1, 2);
        zc_bulk_commit();
        zc_bulk_wait_read<1>();
        zc_bulk_wait<0>();
    } else {
        zc_registers_take<200>();
        zc_named_sync(1, 256);
        f32 d[4] = {f[0], f[1], f[2], f[3]}, e[128];
        if (zc_warpgroup() == 1 && zc_warp() == 4 && zc_elect()) d[0] = 1;
        zc_async_fence();
        zc_wgmma_fence();
        narrow(d, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        both(d, zc_wgmma_across(tile, 0, 1024), zc_wgmma_along(tile + 32768), true);
        i32 s[4] = {};
        narrow_tf32(d, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        narrow_e4m3(d, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        narrow_s8(s, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        narrow_s8u8(s, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        narrow_u8s8(s, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        narrow_u8(s, zc_wgmma_along(tile), zc_wgmma_along(tile + 32768), true);
        narrow(d, zc_wgmma_along(tile), zc_wgmma_windows(tile, 32768, 48), true);
        const u32 rows[4] = {u[0], u[1], u[2], u[3]};
        held(d, rows, zc_wgmma_across(tile, 32768, 1024), true);
        held_e4m3(d, rows, zc_wgmma_along(tile + 32768), true);
        held_s8(s, rows, zc_wgmma_along(tile + 32768), true);
        const u32 first = 0x44444444, last = 0xeeeeeeee;
        sparse(d, zc_wgmma_windows(tile, 0, 1024), zc_wgmma_along(tile + 32768, 64), first, true);
        sparse_wide(e, zc_wgmma_windows(tile, 0, 1024), zc_wgmma_along(tile + 32768), last, false);
        wide(e, zc_wgmma_along(tile), zc_wgmma_across(tile, 32768, 8192), false);
        zc_wgmma_commit();
        zc_wgmma_wait<1>();
        zc_wgmma_wait<0>();
        const u32 r[4] = {zc_bits(d[0]), (u32)s[0], zc_bits(e[2]), zc_bits(e[3])};
        zc_stmatrix_x4(tile + 16 * (threadIdx.x % 32), r);
        zc_stmatrix_x4_trans(tile + 16 * (threadIdx.x % 32), r);
    }
    zc_grid_launch();
}
