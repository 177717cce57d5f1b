/* Random operands, and a comparison of an operation's fast kernel with its reference kernel.
 * Include cmocka.h and what it needs before. */
#ifndef ZC_TESTS_OP_RANDOM_H
#define ZC_TESTS_OP_RANDOM_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"
#include "cpu/random.h"
#include "support/expect.h"

/* A f32 tensor of normal numbers times `scale`; different seeds give different ones. The caller
 * frees its data. */
static inline zc_tensor random_f32(uint64_t seed, float scale, int rank, const int64_t *dims)
{
    zc_tensor t = {.dtype = ZC_F32, .rank = rank};
    size_t bytes;
    if (rank) memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    assert_true(zc_tensor_bytes(&t, &bytes));
    t.data = malloc(bytes + 1);
    assert_non_null(t.data);
    for (int64_t i = 0; i < zc_tensor_numel(&t); i++)
        ((float *)t.data)[i] = scale * (float)zc_random_normal(zc_random_key(seed), (uint64_t)i);
    return t;
}
#define RANDOM(seed, scale, ...)                                                                   \
    random_f32(seed, scale, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),             \
               (const int64_t[]){__VA_ARGS__})

/* Every output element of both kernels within tol*(1 + magnitude). Outputs are all asked for, but
 * those whose bit is set in `skip`. */
static inline void fast_agrees(zc_op op, const void *attrs, int nin, const zc_tensor *in, int nout,
                               unsigned skip, double tol)
{
    zc_diag *diag = zc_diag_create();
    zc_tensor a[8], b[8];
    assert_in_range(nout, 1, 8);
    for (int i = 0; i < nout; i++)
        a[i] = b[i] = (zc_tensor){.dtype = skip >> i & 1 ? ZC_NONE : ZC_F32};
    expect_ok(diag, zc_cpu_eval(op, attrs, nin, in, nout, a, true, "node", diag));
    expect_ok(diag, zc_cpu_eval(op, attrs, nin, in, nout, b, false, "node", diag));
    for (int i = 0; i < nout; i++) {
        if (skip >> i & 1) continue;
        assert_int_equal(zc_tensor_numel(&a[i]), zc_tensor_numel(&b[i]));
        for (int64_t e = 0; e < zc_tensor_numel(&a[i]); e++) {
            double want = zc_get(&a[i], e), got = zc_get(&b[i], e);
            if (!(fabs(got - want) <= tol * (1 + fabs(want))))
                fail_msg("%s output %d element %lld: fast %.9g, reference %.9g",
                         zc_op_get(op)->name, i, (long long)e, got, want);
        }
        free(a[i].data);
        free(b[i].data);
    }
    zc_diag_destroy(&diag);
}

static inline void free_tensors(zc_tensor *t, int n)
{
    for (int i = 0; i < n; i++) free(t[i].data);
}

#endif
