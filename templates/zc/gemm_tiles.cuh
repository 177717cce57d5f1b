// The tiles of a product on Hopper in the order in which persistent blocks take them.
//
// spec.h: see zc/gemm_sm90.cuh, and the configuration: tiles of Z_TILE_M x Z_TILE_N, Z_STAGES, Z_CLUSTER (blocks below each
// other), Z_PINGPONG, Z_RASTER (rows of tiles that neighbouring blocks share columns of).
#pragma once
#include "zc/gemm_sm90.cuh"

template <class PIPE> struct zc_gemm_tiles : PIPE {
    int down, across, tiles; // tiles: of clusters

    // results: bytes between the ring and its barriers.
    ZC_MEMBER zc_gemm_tiles(const zc_gemm_sm90_params &p, unsigned char *memory, int results)
        : PIPE(p, memory, PIPE::RING + results) {
        down = (int)((p.g.m + Z_TILE_M * PIPE::CLUSTER - 1) / (Z_TILE_M * PIPE::CLUSTER));
        across = (int)((p.g.n + PIPE::RESULT_N - 1) / PIPE::RESULT_N);
        tiles = down * across * p.items;
    }
    ZC_MEMBER zc_gemm_origin place_of(int tile) const {
        const int item = tile / (down * across), at = tile - item * down * across;
        const int group = at / (Z_RASTER * across), first = group * Z_RASTER, in = at - first * across;
        const int rows = down - first < Z_RASTER ? down - first : Z_RASTER;
        return {((first + in % rows) * PIPE::CLUSTER + this->rank) * Z_TILE_M, in / rows * PIPE::RESULT_N, item};
    }
    ZC_MEMBER void produce() const {
        PIPE::produce(tiles, [&](int tile) { return place_of(tile); });
    }
};
