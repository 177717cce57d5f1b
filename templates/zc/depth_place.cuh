// Where a thread of a convolution of each channel by itself works, channels last: a block has a chunk of channels of a tile of the
// result.
//
// spec.h: Z_channels, the window (zc/window.cuh), Z_EACH (channels of a thread), Z_RUN (its neighbouring pixels), Z_GROUPS (threads
// along the channels), Z_ACROSS and Z_DOWN (threads along a line and down), Z_REPEAT (lines of a thread).
#pragma once
#include "abi/conv.h"
#include "zc/window.cuh"

struct zc_depth_place {
    static constexpr int CHANNELS = Z_GROUPS * Z_EACH, TAPS = Z_KERNEL0 * Z_KERNEL1 * Z_KERNEL2;
    static constexpr int THREADS = Z_GROUPS * Z_ACROSS * Z_DOWN;

    const zc_conv_params &p;
    zc_window w;
    int chunk, slab, top, col; // where the chunk begins, and of the result: the tile's first line, the run's first column
    int down;                  // which of the threads that are below each other
    int row;                   // the thread's first line where its lines are Z_DOWN apart
    i64 image;

    ZC_MEMBER zc_depth_place(const zc_conv_params &p) : p(p), w(zc_window_of(p)) {
        const int chunks = (int)(Z_channels / CHANNELS), across = (w.out[2] + Z_ACROSS * Z_RUN - 1) / (Z_ACROSS * Z_RUN);
        const int tiles = (w.out[1] + Z_DOWN * Z_REPEAT - 1) / (Z_DOWN * Z_REPEAT); // of a plane, down
        const int tile = (int)blockIdx.x / chunks, rest = tile / across, run = (int)threadIdx.x / Z_GROUPS;
        const int plane = rest / tiles;
        chunk = ((int)blockIdx.x - tile * chunks) * CHANNELS;
        image = plane / w.out[0];
        slab = plane - (int)image * w.out[0];
        col = ((tile - rest * across) * Z_ACROSS + run % Z_ACROSS) * Z_RUN;
        top = (rest - plane * tiles) * (Z_DOWN * Z_REPEAT);
        down = run / Z_ACROSS;
        row = (rest - plane * tiles) * (Z_DOWN * Z_REPEAT) + run / Z_ACROSS;
    }
    ZC_MEMBER int channel() const { return (int)threadIdx.x % Z_GROUPS * Z_EACH; } // in the chunk
    ZC_MEMBER i64 pixel_at(int row, int col) const { return ((image * w.out[0] + slab) * w.out[1] + row) * w.out[2] + col; }
};
