#include "kernels/rowplan.h"

enum {
    WARP = 32,
    ROW_WARPS = 4,    /* of a block, when a warp has a row of its own */
    WARP_MOST = 1024, /* elements of a row that a warp takes */
    STATE = 16
};

static int team_of(int64_t n)
{
    return n <= WARP_MOST ? WARP : n <= 4096 ? 128 : n <= 8192 ? 256 : n <= 16384 ? 512 : 1024;
}

/* Is every row's length a multiple of vec? */
static bool divides(int64_t vec, const zc_dim *dims, int n)
{
    uint64_t known = 1;
    for (int d = 0; d < n; d++)
        if (zc_dim_is_const(dims[d])) known *= (uint64_t)dims[d].k; /* wraps: powers of 2 stay */
    return known % (uint64_t)vec == 0;
}

static bool has_fused_work(const zc_gen *g)
{
    int extras;
    return zc_op_prologue(g->info, g->attrs, &extras) || zc_op_epilogue(g->info, g->attrs);
}

int64_t zc_gen_rows(zc_gen *g, const zc_dim *dims, int n, unsigned bytes, int64_t *team)
{
    static const int64_t bound = WARP_MOST;
    int64_t low, high, vec = 16 / (int64_t)bytes, most = 0;
    bool exact = true;
    for (int d = 0; d < n; d++) exact = exact && zc_dim_is_const(dims[d]);
    zc_gen_size(g, dims, n, &bound, 1, &low, &high);
    if (exact) {
        *team = team_of(low);
        most = low;
        zc_gen_define(g, "N", "%lldLL", (long long)low);
    } else {
        *team = high <= WARP_MOST ? WARP : 256;
        if (high <= WARP_MOST && !has_fused_work(g)) most = high;
        zc_gen_define(g, "N", "(p.N)");
    }
    g->config[0] = divides(vec, dims, n) ? vec : exact ? 1 : 0;
    if (g->divides && !exact) g->config[0] = 1;
    zc_gen_define(g, "MOST", "%lldLL", (long long)most);
    zc_gen_define(g, "EXACT", "%s", exact ? "true" : "false");
    g->threads = *team == WARP ? WARP * ROW_WARPS : (uint32_t)*team;
    g->smem = 32 * STATE;
    return exact ? low : 0;
}

/* Blocks that stay on a multiprocessor, by their registers; 0: too few to be worth it. */
static int64_t shares_of(const zc_gen *g, int64_t length, int64_t team, int64_t held)
{
    enum { REGISTERS = 65536, OWN = 40, UNIT = 8, LEAST = 2 };
    const int64_t vec = g->config[0];
    int64_t bytes = zc_ceil_div(length, team * vec) * vec * held;
    int64_t each = zc_ceil_div(OWN + zc_ceil_div(bytes, 4), UNIT) * UNIT;
    int64_t shares = REGISTERS / (each * (int64_t)g->threads);
    return shares < LEAST ? 0 : shares;
}

int64_t zc_gen_rows_shares(zc_gen *g, int64_t length, int64_t team, int64_t held)
{
    /* On Hopper, where no operands of fused work are read beside them. */
    const bool may = g->arch >= 90 && length > 0 && g->config[0] > 1 && held &&
                     g->step->nin <= (uint32_t)g->info->max_in;
    const int64_t shares = may ? shares_of(g, length, team, held) : 0;
    g->configurations = shares ? 2 : 1;
    return g->candidate > 1 || g->refused ? 0 : shares;
}

zc_status zc_launch_rows(zc_launch *l, int64_t rows, int64_t length, int64_t team, int64_t shares,
                         unsigned bytes, const void *params, size_t params_bytes)
{
    const zc_pkernel *k = l->kernel;
    int entry = !k->config[0] && length % (16 / bytes) ? 1 : 0;
    zc_dim3 grid = {zc_launch_blocks(rows, team == WARP ? ROW_WARPS : 1, shares * l->sm_count), 1,
                    1};
    return zc_launch_kernel(l, entry, grid, k->threads, k->smem, params, params_bytes);
}
