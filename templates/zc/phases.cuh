// Where windows begin whose channels are phases (src/op/window.h). spec.h: Z_PHASES, of each of three axes, and Z_LATE, from
// which on they begin an element later; without, there is one phase.
#pragma once
#include "zc/device.cuh"

struct zc_later {
    int axes; // a bit each, as registers are few
    ZC_MEMBER int by(int axis) const { return axes >> axis & 1; }
};
ZC_DEV zc_later zc_later_of(int phase) {
    zc_later r = {0};
#ifdef Z_PHASES
    constexpr int phases[] = {Z_PHASES}, late[] = {Z_LATE};
#pragma unroll
    for (int d = 2; d >= 0; d--) {
        r.axes |= (phase % phases[d] >= late[d]) << d;
        phase /= phases[d];
    }
#endif
    return r;
}
