// A place in a ring of stages in shared memory, and the parity of the phase that its barriers are in there.
#pragma once
#include "zc/device.cuh"

template <int STAGES> struct zc_ring_slot {
    int stage, parity;
    ZC_MEMBER void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    ZC_MEMBER void skip(int n) {
        const int to = stage + n;
        stage = to % STAGES;
        parity ^= to / STAGES & 1;
    }
};
