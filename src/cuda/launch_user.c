/* A user's own kernel: its launch as the rule file computes it from the shapes. */
#include <string.h>

#include "abi/user.h"
#include "cuda/launch.h"
#include "cuda/launcher.h"
#include "op/sizes.h"

enum { GRID_YZ_MAX = 65535 };

typedef struct job {
    zc_launch *l;
    const zc_attrs_UserKernel *a;
    zc_type types[ZC_USER_INPUTS + ZC_USER_OUTPUTS];
    zc_sizes_env env;
} job;

static void add_type(job *j, const zc_tensor *t)
{
    zc_type *type = &j->types[j->env.ntypes++];
    *type = (zc_type){.dtype = t->dtype, .rank = t->rank};
    for (int d = 0; d < t->rank; d++) type->dims[d] = zc_dim_const(t->dims[d]);
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

#define fail(j, what, ...)                                                                         \
    zc_fail((j)->l->diag, ZC_ERR_INPUT, (j)->l->subject, "kernel %s (%s): " what,                  \
            text_of((j)->a->name), text_of((j)->a->origin), __VA_ARGS__)

/* The list of a text, each in [low, high]. */
static zc_status evaluate(job *j, const char *what, const char **text, int most, int64_t low,
                          int64_t high, int64_t *out, int *n)
{
    zc_dim v[ZC_USER_ARGS];
    *text = zc_sizes_eval(*text, &j->env, most, v, n);
    if (!*text)
        return fail(j,
                    "%s cannot be computed for these shapes (it overflows, divides by zero, or "
                    "asks for a dimension that is not there)",
                    what);
    for (int i = 0; i < *n; i++) {
        out[i] = v[i].k;
        if (out[i] < low || out[i] > high)
            return fail(j, "bad %s (got %lld, need %lld to %lld)", what, (long long)out[i],
                        (long long)low, (long long)high);
    }
    return ZC_OK;
}

static zc_status find_grid(job *j, zc_dim3 *grid)
{
    int64_t v[3] = {1, 1, 1};
    int n;
    const char *text = j->a->grid;
    ZC_TRY(evaluate(j, "grid", &text, 3, 1, INT32_MAX, v, &n));
    if (v[1] > GRID_YZ_MAX || v[2] > GRID_YZ_MAX)
        return fail(j, "bad grid (got %lld and %lld in y and z, need at most %d)", (long long)v[1],
                    (long long)v[2], GRID_YZ_MAX);
    *grid = (zc_dim3){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]};
    return ZC_OK;
}

static zc_status find_args(job *j, struct zc_user_params *p)
{
    const char *text = j->a->args ? j->a->args : "";
    for (int i = 0, n; *text && i < ZC_USER_ARGS; i++) {
        int64_t v = 0;
        ZC_TRY(evaluate(j, "argument", &text, 1, INT64_MIN + 1, INT64_MAX, &v, &n));
        p->arg[i] = v;
    }
    return ZC_OK;
}

static zc_status one(job *j, const char *what, const char *text, int64_t low, int64_t high,
                     uint32_t *out)
{
    int64_t v = low;
    int n;
    ZC_TRY(evaluate(j, what, &text, 1, low, high, &v, &n));
    *out = (uint32_t)v;
    return ZC_OK;
}

static bool is_empty(const zc_launch *l)
{
    for (int i = 0; i < l->nout; i++)
        if (zc_tensor_numel(&l->out[i]) > 0) return false;
    return true;
}

zc_status zc_launch_user(zc_launch *l)
{
    struct zc_user_params p;
    job j = {.l = l, .a = ZC_ATTRS(l, UserKernel)};
    uint32_t block, shared;
    zc_dim3 grid;
    if (l->nin > ZC_USER_INPUTS || l->nout > ZC_USER_OUTPUTS)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject, "too many operands");
    if (is_empty(l)) return ZC_OK;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < l->nin; i++) add_type(&j, &l->in[i]);
    for (int i = 0; i < l->nout; i++) add_type(&j, &l->out[i]);
    j.env.types = j.types;
    j.env.tuned = j.a->tuned;
    for (int i = 0; i < l->nin; i++) p.in[i] = l->in[i].data;
    for (int i = 0; i < l->nout; i++) p.out[i] = l->out[i].data;
    const zc_image *image = l->launcher->image;
    ZC_TRY(find_grid(&j, &grid));
    ZC_TRY(one(&j, "block", j.a->block, 1, ZC_USER_BLOCK_MAX, &block));
    ZC_TRY(one(&j, "amount of shared memory", j.a->shared, 0,
               image ? image->device.smem_max : INT32_MAX, &shared));
    ZC_TRY(find_args(&j, &p));
    return zc_launch_kernel(l, 0, grid, block, shared, &p, sizeof p);
}
