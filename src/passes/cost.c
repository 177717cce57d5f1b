#include "passes/cost.h"

#include "kernels/window.h"

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

bool zc_cost_conv(const zc_graph *g, const zc_node *n, int w, zc_conv_work *work)
{
    const zc_type *x = &zc_val(g, n->in[0])->type, *y = &zc_val(g, n->out[0])->type;
    const zc_tensor *weights = zc_val(g, n->in[w])->data;
    bool certain = zc_dim_is_const(y->dims[0]);
    *work = (zc_conv_work){.axes = x->rank - 2, .images = y->dims[0].k};
    zc_window_attrs_of(n->op, n->attrs, &work->window, &work->groups);
    work->in = weights->dims[weights->rank - 1];
    work->out = weights->dims[0] / work->groups;
    for (int i = 0; i < work->axes; i++) {
        certain = certain && zc_dim_is_const(x->dims[1 + i]) && zc_dim_is_const(y->dims[1 + i]);
        work->sides[i] = y->dims[1 + i].k;
        work->kernel[i] = weights->dims[1 + i];
    }
    return certain;
}

/* With its latencies. A guess, as bytes that are read and written in a microsecond are
 * (bench/NOTES.md). */
double zc_cost_launch_us(void)
{
    return 2;
}

double zc_cost_move_us(const zc_type *t)
{
    const double bytes_per_us = 2e6;
    return zc_cost_launch_us() + 2 * (double)zc_cost_bytes(t) / bytes_per_us;
}
