#include "kernels/collapse.h"

/* Does stepping along axis `outer` equal going once through axis `inner` for every operand? */
static bool joins(const zc_collapsed *c, int n, const int64_t *outer_strides)
{
    int inner = c->rank - 1;
    for (int i = 0; i < n; i++) {
        int64_t whole;
        if (!zc_mul_i64(c->strides[i][inner], c->dims[inner], &whole) || outer_strides[i] != whole)
            return false;
    }
    return true;
}

void zc_collapse(int rank, const int64_t *dims, int n, const int64_t (*strides)[ZC_MAX_RANK],
                 zc_collapsed *out)
{
    out->rank = 0;
    /* Innermost first, turned round at the end. */
    for (int d = rank - 1; d >= 0; d--) {
        int64_t step[ZC_COLLAPSE_OPERANDS];
        if (dims[d] == 1) continue;
        for (int i = 0; i < n; i++) step[i] = strides[i][d];
        if (out->rank && joins(out, n, step)) {
            out->dims[out->rank - 1] *= dims[d];
            continue;
        }
        out->dims[out->rank] = dims[d];
        for (int i = 0; i < n; i++) out->strides[i][out->rank] = step[i];
        out->rank++;
    }
    for (int a = 0, b = out->rank - 1; a < b; a++, b--) {
        int64_t t = out->dims[a];
        out->dims[a] = out->dims[b];
        out->dims[b] = t;
        for (int i = 0; i < n; i++) {
            t = out->strides[i][a];
            out->strides[i][a] = out->strides[i][b];
            out->strides[i][b] = t;
        }
    }
}

void zc_collapse_broadcast(const zc_tensor *out, int n, const zc_tensor *operands,
                           const int64_t *pitches, zc_collapsed *collapsed)
{
    int64_t strides[ZC_COLLAPSE_OPERANDS][ZC_MAX_RANK];
    for (int i = 0; i < n; i++) {
        const zc_tensor *t = &operands[i];
        int64_t s = 1;
        for (int d = out->rank - 1; d >= 0; d--) {
            int own = d - (out->rank - t->rank);
            bool along = own >= 0 && t->dims[own] != 1;
            strides[i][d] = along ? s : 0;
            if (own >= 0)
                s = own == t->rank - 1 && pitches && pitches[i] ? pitches[i] : s * t->dims[own];
        }
    }
    zc_collapse(out->rank, out->dims, n, (const int64_t(*)[ZC_MAX_RANK])strides, collapsed);
}
