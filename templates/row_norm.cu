// Normalisation of rows: y = (v - mean) / sqrt(variance + eps) * scale + bias, or with Z_RMS v / rms * scale + bias,
// where v = x + skip + skip_bias, or with Z_TABLES (2 or 3) a sum of embeddings. y may overwrite x.
//
// spec.h: Z_X (type of x, skip, skip_bias and sum), Z_S (of scale and bias), Z_Y (of y), Z_STAT (of mean and inv), Z_ACC (of
// sums), rows (zc/rows.cuh), Z_OPERANDS (bits of those that are there), Z_RMS, Z_OUTER_RANK, Z_OUTER_DIMS and
// Z_OUTER_STRIDES (which row of operands belongs to a row, when that is certain), Z_STRIDED (operands may be broadcast in a
// row); Z_ALSO (type of a second result, zc_also_point of y); Z_TABLES with Z_ID0, Z_ID1, Z_ID2 (types of ids), Z_IDS0,
// Z_IDS1, Z_IDS2 (how many, which are used again after that many), Z_length (words of a sequence), Z_MASK and Z_COUNT (of the
// mask and the counts).
// Entries: 0, and for rows of an uncertain length 1, which takes one element at once; 2: counts.
#include "zc/device.cuh"
#include "abi/row_norm.h"
#include "spec.h"

#include "zc/fused.cuh"
#include "zc/rows.cuh"
#include "zc/states.cuh"

typedef Z_ACC acc;

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

// Is there such an operand? Teams that stay have no registers for those that are not; elsewhere the test itself keeps loads
// apart that the compiler would ask for at once, with more registers than it likes to give.
template <int O> ZC_DEV bool has(const zc_row_norm_params &p) {
    return ZC_ROWS_STAY ? Z_OPERANDS >> O & 1 : p.operand[O] != nullptr;
}
// Columns [j, j + V) of an operand's rows; of one that is not there zeros.
template <int O, class T, int V>
ZC_DEV zc_vec<T, V> operand_of(const zc_row_norm_params &p, const offsets &row, i64 j) {
    if (has<O>(p)) return *(const zc_vec<T, V> *)((const T *)p.operand[O] + operand_at(p, O, row, j));
    return {};
}
template <class T, int V> ZC_DEV void add(const zc_vec<T, V> &x, acc *v) {
#pragma unroll
    for (int k = 0; k < V; k++) v[k] += (acc)zc_get(x.v[k]);
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
// What V elements of a row are made of, as it stands in memory.
template <int V> struct parts {
    zc_vec<Z_X, V> of[Z_TABLES];
    ZC_MEMBER void ask(const zc_row_norm_params &p, const origin &from, i64, i64 j) {
#pragma unroll
        for (int t = 0; t < Z_TABLES; t++) { // no branch around the sum, so that all rows are asked for first
            of[t] = {};
            if (from.table[t] >= 0) of[t] = *(const zc_vec<Z_X, V> *)((const Z_X *)p.table[t].data + from.table[t] + j);
        }
    }
    ZC_MEMBER void sum(const zc_row_norm_params &, const zc_vec<Z_X, V> &, i64, acc *v) const {
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = (acc)0;
#pragma unroll
        for (int t = 0; t < Z_TABLES; t++) add(of[t], v);
    }
};
#else
ZC_DEV origin origin_of(const zc_row_norm_params &p, i64 row) {
    return {zc_offsets_at<ZC_ROW_OPERANDS>(outer_shape::of(p.outer), row)};
}
template <int V> struct parts {
    zc_vec<Z_X, V> x, skip;
    ZC_MEMBER void ask(const zc_row_norm_params &p, const origin &from, i64 i, i64 j) {
        x = *(const zc_vec<Z_X, V> *)((const Z_X *)p.x + i);
        skip = operand_of<ZC_ROW_SKIP, Z_X, V>(p, from.row, j);
    }
    ZC_MEMBER void sum(const zc_row_norm_params &p, const zc_vec<Z_X, V> &skip_bias, i64 i, acc *v) const {
        const zc_vec<Z_X, V> now = zc_needed(x);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = zc_pre(p.pre, now.v[k], i + k);
        if (has<ZC_ROW_SKIP>(p)) add(zc_needed(skip), v);
        if (has<ZC_ROW_SKIP_BIAS>(p)) add(zc_needed(skip_bias), v);
    }
};
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

// The other operands of V columns. Teams that stay, whose rows all have the same ones, ask for them once.
template <int V> struct operands {
    zc_vec<Z_X, V> skip_bias;
    zc_vec<Z_S, V> scale, bias;
    ZC_MEMBER void ask_skip_bias(const zc_row_norm_params &p, const origin &from, i64 j) {
        skip_bias = operand_of<ZC_ROW_SKIP_BIAS, Z_X, V>(p, from.row, j);
    }
    ZC_MEMBER void ask_gain(const zc_row_norm_params &p, const origin &from, i64 j) {
        scale = operand_of<ZC_ROW_SCALE, Z_S, V>(p, from.row, j);
        bias = operand_of<ZC_ROW_BIAS, Z_S, V>(p, from.row, j);
    }
};

struct statistics {
    acc mean, inv;
};

template <int V>
ZC_DEV void finish(const zc_row_norm_params &p, const origin &from, operands<V> &with, const statistics &row, i64 i, i64 j,
                   acc *v) {
    if (p.sum) put<Z_X, V>(p.sum, i, v);
#ifndef Z_ALSO
    if (!p.y) return;
#endif
    if (!ZC_ROWS_STAY) with.ask_gain(p, from, j);
    const zc_vec<Z_S, V> scale = zc_needed(with.scale), bias = zc_needed(with.bias);
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = (v[k] - row.mean) * row.inv * (acc)zc_get(scale.v[k]) + (acc)zc_get(bias.v[k]);
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

ZC_DEV acc mean_of(const zc_row_norm_params &p, zc_sum<acc> sum) {
#ifdef Z_RMS
    return (acc)0;
#else
    return zc_join_row(sum).v / (acc)Z_N;
#endif
}
ZC_DEV statistics statistics_of(const zc_row_norm_params &p, i64 row, acc mean, zc_sum<acc> squares) {
    const acc inv = (acc)1 / zx_sqrt(zc_join_row(squares).v / (acc)Z_N + (acc)p.eps);
    if (p.mean && zc_team_lane() == 0) zc_save<Z_STAT>(p.mean, row, mean);
    if (p.inv && zc_team_lane() == 0) zc_save<Z_STAT>(p.inv, row, inv);
    return {mean, inv};
}

template <int V> ZC_DEV void rows_in_registers(const zc_row_norm_params &p, i64 row) {
    constexpr int KEEP = zc_keep<V>::value;
    origin from = origin_of(p, row);
    parts<V> next[KEEP];
    operands<V> with[KEEP];
    if (ZC_ROWS_STAY)
        zc_kept_pieces<V>(p, [&](int k, i64 j) {
            next[k].ask(p, from, row * Z_N + j, j);
            with[k].ask_skip_bias(p, from, j);
            with[k].ask_gain(p, from, j);
        });
    for (i64 now = row; now < p.rows; now = row) {
        acc kept[KEEP * V];
        zc_sum<acc> sum = zc_sum<acc>::none(), squares = zc_sum<acc>::none();
        zc_kept_pieces<V>(p, [&](int k, i64 j) {
            if (!ZC_ROWS_STAY) {
                next[k].ask(p, from, now * Z_N + j, j);
                with[k].ask_skip_bias(p, from, j);
            }
            next[k].sum(p, with[k].skip_bias, now * Z_N + j, kept + k * V);
#pragma unroll
            for (int e = 0; e < V; e++) sum.v += kept[k * V + e];
        });
        row = zc_next_row(now, p.rows);
        if (ZC_ROWS_STAY && row < p.rows) {
            from = origin_of(p, row);
            zc_kept_pieces<V>(p, [&](int k, i64 j) { next[k].ask(p, from, row * Z_N + j, j); });
        }
        const acc mean = mean_of(p, sum);
        zc_kept_pieces<V>(p, [&](int k, i64) {
#pragma unroll
            for (int e = 0; e < V; e++) squares.v += (kept[k * V + e] - mean) * (kept[k * V + e] - mean);
        });
        const statistics of = statistics_of(p, now, mean, squares);
        zc_kept_pieces<V>(p, [&](int k, i64 j) {
            finish<V>(p, from, with[k], of, now * Z_N + j, j, kept + k * V);
        });
    }
}

template <int V> ZC_DEV void row_in_memory(const zc_row_norm_params &p, i64 row) {
    const i64 first = zc_first_column<V>();
    const origin from = origin_of(p, row);
    operands<V> with;
    acc v[V];
    zc_sum<acc> sum = zc_sum<acc>::none(), squares = zc_sum<acc>::none();
    const auto elements = [&](i64 j) {
        parts<V> x;
        x.ask(p, from, row * Z_N + j, j);
        with.ask_skip_bias(p, from, j);
        x.sum(p, with.skip_bias, row * Z_N + j, v);
    };
#ifndef Z_RMS
    for (i64 j = first; j < Z_N; j += ZC_ROW_STEP<V>) {
        elements(j);
#pragma unroll
        for (int e = 0; e < V; e++) sum.v += v[e];
    }
#endif
    const acc mean = mean_of(p, sum);
    for (i64 j = first; j < Z_N; j += ZC_ROW_STEP<V>) {
        elements(j);
#pragma unroll
        for (int e = 0; e < V; e++) squares.v += (v[e] - mean) * (v[e] - mean);
    }
    const statistics of = statistics_of(p, row, mean, squares);
    for (i64 j = first; j < Z_N; j += ZC_ROW_STEP<V>) {
        elements(j);
        finish<V>(p, from, with, of, row * Z_N + j, j, v);
    }
}

template <int V> ZC_DEV void rows_from(const zc_row_norm_params &p, i64 row) {
    if constexpr (zc_keep<V>::value > 0)
        rows_in_registers<V>(p, row);
    else
        row_in_memory<V>(p, row);
}

constexpr int wide = 16 / (sizeof(Z_X) > sizeof(Z_S) ? (int)sizeof(Z_X) : (int)sizeof(Z_S));
ZC_ROW_KERNEL(0, rows_from, (Z_VECTOR ? Z_VECTOR : wide), zc_row_norm_params)
#if Z_VECTOR == 0
ZC_ROW_KERNEL(1, rows_from, 1, zc_row_norm_params)
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
