// The last of some blocks to come, which goes on with what all of them left.
#pragma once
#include "zc/device.cuh"

// Is this block the last of `count`? It then sees what each of them wrote before it came, and the counter (of
// zc_launch_counters) is zero again. All threads of the block call it.
ZC_DEV bool zc_last_block(u32 *counter, u32 count) {
    __shared__ bool last;
    zc_sync();
    if (threadIdx.x == 0) last = zc_take_turn(counter, count - 1) == count - 1;
    zc_sync();
    return last;
}
