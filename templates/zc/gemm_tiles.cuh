// The tiles of a product on Hopper in the order in which persistent blocks take them.
//
// spec.h: see zc/gemm_sm90.cuh, and the configuration: tiles of Z_TILE_M x Z_TILE_N, Z_STAGES, Z_CLUSTER (blocks below each
// other), Z_PINGPONG, Z_RASTER (rows of tiles that neighbouring blocks share columns of).
#pragma once
#include "zc/gemm_sm90.cuh"
#include "zc/index.cuh"

template <class PIPE> struct zc_gemm_tiles : PIPE {
    int tiles; // of clusters

    // results: bytes between the ring and its barriers.
    ZC_MEMBER zc_gemm_tiles(const zc_gemm_sm90_params &p, unsigned char *memory, int results)
        : PIPE(p, memory, PIPE::RING + results), tiles(p.order.down * p.order.across * p.items) {}
    ZC_MEMBER zc_gemm_origin place_of(int tile) const {
        const zc_gemm_order &o = this->p.order;
        const int item = (int)zc_divide((u32)tile, o.by_item), at = tile - item * (int)o.by_item.d;
        const int group = (int)zc_divide((u32)at, o.by_group), in = at - group * (int)o.by_group.d;
        const int first = group * Z_RASTER, lines = o.down - first < Z_RASTER ? (int)o.by_rest.d : Z_RASTER;
        const int col = lines < Z_RASTER ? (int)zc_divide((u32)in, o.by_rest) : in / Z_RASTER;
        return {((first + in - col * lines) * PIPE::CLUSTER + this->rank) * Z_TILE_M, col * PIPE::RESULT_N, item};
    }
    ZC_MEMBER void produce() const {
        PIPE::produce(tiles, [&](int tile) { return place_of(tile); });
    }
};
