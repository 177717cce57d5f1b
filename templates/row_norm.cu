// Normalisation of rows: y = (v - mean) / sqrt(variance + eps) * scale + bias, or with Z_RMS v / rms * scale + bias,
// where v = x + skip + skip_bias, or with Z_TABLES (2 or 3) a sum of embeddings. y may overwrite x.
//
// spec.h: Z_X (type of x, skip, skip_bias and sum), Z_S (of scale and bias), Z_Y (of y), Z_STAT (of mean and inv), Z_ACC (of
// sums), rows (zc/rows.cuh), Z_RMS, Z_OUTER_RANK, Z_OUTER_DIMS and Z_OUTER_STRIDES (which row of operands belongs to a row, when that
// is certain), Z_STRIDED (operands may be broadcast in a row); Z_ALSO (type of a second result, zc_also_point of y); Z_TABLES with Z_ID0, Z_ID1, Z_ID2 (types of ids), Z_IDS0, Z_IDS1,
// Z_IDS2 (how many, which are used again after that many), Z_length (words of a sequence), Z_MASK and
// Z_COUNT (of the mask and the counts).
// Entries: 0, and for rows of an uncertain length 1, which takes one element at once; 2: counts.
#include "zc/device.cuh"
#include "abi/row_norm.h"
#include "spec.h"

#include "zc/fused.cuh"
#include "zc/rows.cuh"
#include "zc/states.cuh"

typedef Z_ACC acc;

template <class T, int V> ZC_DEV void add(const void *data, i64 at, acc *v) {
    const zc_vec<T, V> x = *(const zc_vec<T, V> *)((const T *)data + at);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] += (acc)zc_get(x.v[k]);
}

#ifdef Z_OUTER_RANK
ZC_STATIC_SHAPE(outer_shape, Z_OUTER_RANK, Z_OUTER_DIMS, Z_OUTER_STRIDES)
#else
ZC_PARAM_SHAPE(outer_shape, zc_row_axes)
#endif
typedef zc_offsets<ZC_ROW_OPERANDS, i64> offsets;

#ifdef Z_STRIDED
ZC_PARAM_SHAPE(inner_shape, zc_row_axes)
ZC_DEV i64 operand_at(const zc_row_norm_params &p, int o, const offsets &row, i64 j) {
    return row.of[o] * p.own_length[o] + zc_offsets_at<ZC_ROW_OPERANDS>(inner_shape::of(p.inner), j).of[o];
}
#else
ZC_DEV i64 operand_at(const zc_row_norm_params &p, int o, const offsets &row, i64 j) { return row.of[o] * Z_N + j; }
#endif

// Columns [j, j + V) of an operand's rows; `absent` when it is not there.
template <class T, int V>
ZC_DEV void fetch(const zc_row_norm_params &p, int o, const offsets &row, i64 j, acc absent, acc *v) {
    const bool is_there = p.operand[o] != nullptr;
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = is_there ? (acc)0 : absent;
    if (is_there) add<T, V>(p.operand[o], operand_at(p, o, row, j), v);
}

// Which rows of operands a row needs, and where those of the tables begin; -1: there is no such row.
struct origin {
    offsets row;
#ifdef Z_TABLES
    i64 table[Z_TABLES];
#endif
};

#ifdef Z_TABLES
template <class ID> ZC_DEV i64 given_id(const zc_row_norm_params &p, const zc_row_table &t, i64 word, i64 count) {
    return t.ids ? (i64)zc_load<ID>(t.ids, word % count) : word % Z_length;
}
ZC_DEV i64 table_row(const zc_row_norm_params &p, const zc_row_table &t, i64 given) {
    const i64 id = given < 0 ? given + t.entries : given; // as Gather counts
    if (id >= 0 && id < t.entries) return id * Z_N;
    zc_report((zc_fault_word *)p.fault, p.step, ZC_FAULT_INDEX, given, -t.entries, t.entries - 1);
    return -1;
}
// All that is read is asked for before anything is computed, ids here, rows below.
ZC_DEV origin origin_of(const zc_row_norm_params &p, i64 word) {
    const i64 given[] = {given_id<Z_ID0>(p, p.table[0], word, Z_IDS0), given_id<Z_ID1>(p, p.table[1], word, Z_IDS1),
                         Z_TABLES == 3 ? given_id<Z_ID2>(p, p.table[2], word, Z_IDS2) : 0};
    origin from = {};
#pragma unroll
    for (int t = 0; t < Z_TABLES; t++) from.table[t] = table_row(p, p.table[t], given[t]);
    return from;
}
template <int V> ZC_DEV void source(const zc_row_norm_params &p, const origin &from, i64, i64 j, acc *v) {
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (acc)0;
#pragma unroll
    for (int t = 0; t < Z_TABLES; t++) {
        zc_vec<Z_X, V> x = {}; // no branch around the sum, so that all rows are asked for first
        if (from.table[t] >= 0) x = *(const zc_vec<Z_X, V> *)((const Z_X *)p.table[t].data + from.table[t] + j);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] += (acc)zc_get(x.v[k]);
    }
}
#else
ZC_DEV origin origin_of(const zc_row_norm_params &p, i64 row) {
    return {zc_offsets_at<ZC_ROW_OPERANDS>(outer_shape::of(p.outer), row)};
}
template <int V> ZC_DEV void source(const zc_row_norm_params &p, const origin &from, i64 i, i64 j, acc *v) {
    acc more[V];
    const zc_vec<Z_X, V> x = *(const zc_vec<Z_X, V> *)((const Z_X *)p.x + i);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = zc_pre(p.pre, x.v[k], i + k);
#pragma unroll
    for (int o = ZC_ROW_SKIP; o <= ZC_ROW_SKIP_BIAS; o++) {
        if (!p.operand[o]) continue;
        fetch<Z_X, V>(p, o, from.row, j, (acc)0, more);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] += more[k];
    }
}
#endif

template <class T, int V> ZC_DEV void put(void *to, i64 i, const acc *v) {
    constexpr int PER = V * sizeof(T) <= 16 ? V : 16 / (int)sizeof(T);
#pragma unroll
    for (int first = 0; first < V; first += PER) {
        zc_vec<T, PER> r;
#pragma unroll
        for (int k = 0; k < PER; k++) r.v[k] = zc_put<T>(v[first + k]);
        *(zc_vec<T, PER> *)((T *)to + i + first) = r;
    }
}

template <int V>
ZC_DEV void finish(const zc_row_norm_params &p, const origin &from, i64 i, i64 j, acc mean, acc inv, acc *v) {
    acc scale[V], bias[V];
    if (p.sum) put<Z_X, V>(p.sum, i, v);
#ifndef Z_ALSO
    if (!p.y) return;
#endif
    fetch<Z_S, V>(p, ZC_ROW_SCALE, from.row, j, (acc)1, scale);
    fetch<Z_S, V>(p, ZC_ROW_BIAS, from.row, j, (acc)0, bias);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (v[k] - mean) * inv * scale[k] + bias[k];
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = zc_fused(p.fused, v[k], i + k);
#ifdef Z_ALSO
    acc also[V];
#pragma unroll
    for (int k = 0; k < V; k++) also[k] = (acc)zc_also_point(zc_through<Z_Y>(v[k]));
    put<Z_ALSO, V>(p.also, i, also);
    if (!p.y) return;
#endif
    put<Z_Y, V>(p.y, i, v);
}

template <int V> ZC_DEV void one_row(const zc_row_norm_params &p, i64 row) {
    constexpr int KEEP = zc_keep<V>::value;
    const i64 step = Z_TEAM * V, first = (i64)zc_team_lane() * V;
    const origin from = origin_of(p, row);
    acc kept[KEEP > 0 ? KEEP * V : 1], v[V];
    zc_sum<acc> sum = zc_sum<acc>::none(), squares = zc_sum<acc>::none();

    if constexpr (KEEP > 0) {
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const i64 j = first + k * step;
            if (j >= Z_N) continue;
            source<V>(p, from, row * Z_N + j, j, kept + k * V);
#pragma unroll
            for (int e = 0; e < V; e++) sum.v += kept[k * V + e];
        }
    } else {
#ifndef Z_RMS
        for (i64 j = first; j < Z_N; j += step) {
            source<V>(p, from, row * Z_N + j, j, v);
#pragma unroll
            for (int e = 0; e < V; e++) sum.v += v[e];
        }
#endif
    }
#ifdef Z_RMS
    const acc mean = (acc)0;
#else
    const acc mean = zc_join_row(sum).v / (acc)Z_N;
#endif
    if constexpr (KEEP > 0) {
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            if (first + k * step >= Z_N) continue;
#pragma unroll
            for (int e = 0; e < V; e++) squares.v += (kept[k * V + e] - mean) * (kept[k * V + e] - mean);
        }
    } else {
        for (i64 j = first; j < Z_N; j += step) {
            source<V>(p, from, row * Z_N + j, j, v);
#pragma unroll
            for (int e = 0; e < V; e++) squares.v += (v[e] - mean) * (v[e] - mean);
        }
    }
    const acc inv = (acc)1 / zx_sqrt(zc_join_row(squares).v / (acc)Z_N + (acc)p.eps);
    if (p.mean && zc_team_lane() == 0) zc_save<Z_STAT>(p.mean, row, mean);
    if (p.inv && zc_team_lane() == 0) zc_save<Z_STAT>(p.inv, row, inv);

    if constexpr (KEEP > 0) {
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const i64 j = first + k * step;
            if (j < Z_N) finish<V>(p, from, row * Z_N + j, j, mean, inv, kept + k * V);
        }
    } else {
        for (i64 j = first; j < Z_N; j += step) {
            source<V>(p, from, row * Z_N + j, j, v);
            finish<V>(p, from, row * Z_N + j, j, mean, inv, v);
        }
    }
}

constexpr int wide = 16 / (sizeof(Z_X) > sizeof(Z_S) ? (int)sizeof(Z_X) : (int)sizeof(Z_S));
ZC_ROW_KERNEL(0, one_row, (Z_VECTOR ? Z_VECTOR : wide), zc_row_norm_params)
#if Z_VECTOR == 0
ZC_ROW_KERNEL(1, one_row, 1, zc_row_norm_params)
#endif

#ifdef Z_TABLES
// One block a sequence.
ZC_KERNEL(2)(const __grid_constant__ zc_row_norm_params p) {
    zc_begin();
    zc_sum<i32> n = zc_sum<i32>::none();
    const i64 sequence = blockIdx.x;
    for (i64 s = threadIdx.x; p.mask && s < Z_length; s += blockDim.x)
        n.v += zc_load<Z_MASK>(p.mask, sequence * Z_length + s) == 1 ? 1 : 0;
    n = zc_join_team<false>(n);
    if (threadIdx.x == 0) zc_save<Z_COUNT>(p.counts, sequence, n.v);
}
#endif
