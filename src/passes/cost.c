#include "passes/cost.h"

int64_t zc_cost_bytes(const zc_type *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++) {
        int64_t size = zc_dim_is_const(t->dims[d]) ? t->dims[d].k : ZC_COST_DIM;
        if (!zc_mul_i64(n, size, &n)) return INT64_MAX / 1024;
    }
    return zc_mul_i64(n, zc_dtype_bits(t->dtype), &n) && n / 8 < INT64_MAX / 1024
               ? (n + 7) / 8
               : INT64_MAX / 1024;
}

int64_t zc_cost_reads(const zc_graph *g, const zc_vid *values, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        const zc_value *v = zc_val(g, values[i]);
        bool number = v->kind == ZC_VALUE_CONST && v->data && zc_tensor_numel(v->data) == 1;
        if (!number) sum += zc_cost_bytes(&v->type);
    }
    return sum;
}

int64_t zc_cost_prologue(const zc_graph *g, const zc_vid *values, int n, zc_vid v, int times)
{
    int64_t in = zc_cost_reads(g, values, n), out = zc_cost_bytes(&zc_val(g, v)->type);
    return ZC_COST_LAUNCH + in + out + times * (out - in);
}

double zc_cost_move_us(const zc_type *t)
{
    /* with its latencies; bytes that are read and written. Guesses (bench/NOTES.md). */
    const double launch_us = 2, bytes_per_us = 2e6;
    return launch_us + 2 * (double)zc_cost_bytes(t) / bytes_per_us;
}
