// Threads of a cluster's blocks meet, in no order of memory: barriers are ready, or what a block sent has been read.
#pragma once
#include "zc/device.cuh"
#include "zc/hopper.cuh"

ZC_DEV void zc_cluster_meet() {
    zc_sync_warp();
    zc_cluster_arrive_relaxed();
    zc_cluster_wait();
}
// Of a cluster of so many blocks; one block's memory is in order behind it.
template <int BLOCKS> ZC_DEV void zc_meet() {
    if (BLOCKS > 1)
        zc_cluster_meet();
    else
        zc_sync();
}
