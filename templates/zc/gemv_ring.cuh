// How the matrix reaches products of few rows: each warp of a block has a ring of slots of its own, and copies are ahead of its
// products, the first ones of the kernel in front where the matrix is CONSTANT. OF, the kernel, has smem, warp, lane, rank and
// met (zc/gemv_sums.cuh), BARRIERS (where they stand behind smem), and of a `place` in its matrix is_there(), next(), and
// load<EARLY>(), which all lanes of a warp call.
#pragma once
#include "zc/gemv_sums.cuh"

template <class OF, int WARPS, int PARTS, int SLOTS, bool CONSTANT> struct zc_gemv_ring {
    ZC_MEMBER const OF &of() const { return static_cast<const OF &>(*this); }
    ZC_MEMBER i64 first_tile() const { return blockIdx.x / PARTS; }
    ZC_MEMBER i64 tile_step() const { return gridDim.x / PARTS; }
    ZC_MEMBER u32 full(int slot) const { return of().smem + OF::BARRIERS + (of().warp * SLOTS + slot) * 8; }
    ZC_MEMBER u32 arrived() const { return of().smem + OF::BARRIERS + WARPS * SLOTS * 8; }

    // All slots; `ahead` is then what comes next.
    template <bool EARLY, class PLACE> ZC_MEMBER void fill(PLACE &ahead) const {
        for (int slot = 0; slot < SLOTS && of().is_there(ahead); slot++, of().next(ahead)) of().template load<EARLY>(slot, ahead);
    }
    // The kernel behind begins to copy when all of this one's copies are asked for, so that the memory is never idle.
    template <class PLACE> ZC_MEMBER void launch_behind(const PLACE &ahead) const {
        if (!of().is_there(ahead)) zc_grid_launch();
    }
    template <class PLACE> ZC_MEMBER void prepare(PLACE &ahead) const {
        const int warp = of().warp, rank = of().rank;
        if (of().lane == 0) {
            for (int slot = 0; slot < SLOTS; slot++) zc_barrier_init(full(slot), 1);
            if (PARTS > 1 && warp == 0) zc_barrier_init(arrived(), 1);
            zc_barrier_fence();
            if (PARTS > 1 && warp == 0 && rank == 0) zc_barrier_expect(arrived(), (PARTS - 1) * decltype(OF::met)::SENT);
        }
        zc_sync_warp();
        if constexpr (CONSTANT) fill<true>(ahead);
    }
    // Behind the kernel in front.
    template <class PLACE> ZC_MEMBER void fill_late(PLACE &ahead) const {
        if constexpr (!CONSTANT) fill<false>(ahead);
    }
    // When the warp has its factors of a slot.
    template <class PLACE> ZC_MEMBER void refill(int slot, PLACE &ahead) const {
        zc_sync_warp(); // all have read
        if (!of().is_there(ahead)) return;
        of().template load<false>(slot, ahead);
        of().next(ahead);
        launch_behind(ahead);
    }
};
