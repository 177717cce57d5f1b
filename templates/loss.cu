// Losses of labels: SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
//
// spec.h: Z_T (type of scores, weights and results), Z_LABEL (of labels), Z_ACC (of sums), Z_SOFTMAX (true or false),
// Z_IGNORES (there is a label without a loss), Z_MEAN (the sum is divided by the sum of weights).
// Entries: 0 losses, or their sums by block; 1 the sum of those.
#include "zc/groups.cuh"
#include "zc/states.cuh"
#include "abi/loss.h"
#include "spec.h"

typedef Z_ACC acc;

struct pair {
    acc loss, weight;
    static ZC_MEMBER pair none() { return {(acc)0, (acc)0}; }
    ZC_MEMBER pair join(pair b) const { return {loss + b.loss, weight + b.weight}; }
    ZC_MEMBER pair other(int mask) const { return {zc_shfl_xor(loss, mask), zc_shfl_xor(weight, mask)}; }
};
struct exps {
    zc_exps<acc> e;
    ZC_MEMBER exps join(exps o) const { return {e.join(o.e)}; }
    ZC_MEMBER exps other(int mask) const { return {e.other(mask)}; }
};

// Loss and weight of a label, given what is subtracted from its scores.
ZC_DEV pair pair_of(const zc_loss_params &p, const zc_place &at, acc top, acc log_sum) {
    const i64 label = (i64)zc_load<Z_LABEL>(p.labels, at.out);
    if (Z_IGNORES && label == p.ignored) return pair::none();
    if (label < 0 || label >= p.classes) {
        zc_report((zc_fault_word *)p.fault, p.step, ZC_FAULT_INDEX, label, 0, p.classes - 1);
        return pair::none();
    }
    const acc weight = p.weights ? (acc)zc_load<Z_T>(p.weights, label) : (acc)1;
    const acc x = (acc)zc_load<Z_T>(p.x, at.base + label * p.inner);
    return {weight * (Z_SOFTMAX ? log_sum - (x - top) : -x), weight};
}

// The sum over the block's threads.
ZC_DEV pair block_sum(pair v) {
    ZC_DYNAMIC_SMEM(smem);
    pair *parts = (pair *)smem;
    for (int mask = 1; mask < 32; mask *= 2) v = v.join(v.other(mask));
    zc_sync();
    if (threadIdx.x % 32u == 0) parts[threadIdx.x / 32u] = v;
    zc_sync();
    v = parts[0];
    for (u32 w = 1; w < blockDim.x / 32u; w++) v = v.join(parts[w]);
    return v;
}

ZC_KERNEL(0)(const __grid_constant__ zc_loss_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    exps s = {zc_exps<acc>::none()};
    pair mine = pair::none();
    acc log_sum = (acc)0, top = (acc)0;
    if (Z_SOFTMAX) {
        zc_walk<Z_T>(p.g, at, p.x, [&](Z_T x, i64, i64) { s.e.add((acc)zc_get(x)); });
        s = zc_join_lanes(p.g, at, s);
        top = s.e.top;
        log_sum = zc_isfinite(top) ? zx_log(s.e.sum) : zc_nan_of(top);
    }
    if (at.valid && at.lane == 0) mine = pair_of(p, at, top, log_sum);
    if (Z_SOFTMAX && p.log_prob)
        zc_walk<Z_T>(p.g, at, p.x, [&](Z_T x, i64 off, i64) {
            zc_save<Z_T>(p.log_prob, off, ((acc)zc_get(x) - top) - log_sum);
        });
    if (!p.sums) {
        if (p.y && at.valid && at.lane == 0) zc_save<Z_T>(p.y, at.out, mine.loss);
        return;
    }
    mine = block_sum(mine);
    if (threadIdx.x == 0) ((pair *)p.sums)[blockIdx.x] = mine;
}

ZC_KERNEL(1)(const __grid_constant__ zc_loss_params p) {
    zc_begin();
    pair v = pair::none();
    for (i64 i = threadIdx.x; i < p.blocks; i += blockDim.x) v = v.join(((const pair *)p.sums)[i]);
    v = block_sum(v);
    if (threadIdx.x == 0) zc_save<Z_T>(p.y, 0, Z_MEAN ? v.loss / v.weight : v.loss);
}
