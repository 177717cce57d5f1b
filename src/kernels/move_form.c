#include "kernels/move_form.h"

#include <string.h>

#include "kernels/divisor.h"
#include "planfile/program.h"

enum {
    BLOCK = 256,
    TRANSPOSE = 5,
    PARTS,
    INTERLEAVE,
    LEAST_SIDE = 8,
    PLANES = 4, /* that are interleaved, at most */
    PIXELS = 4  /* at once */
};

void zc_move_axis(zc_move *m, int64_t dim, int64_t to, int64_t from)
{
    int last = m->rank - 1;
    if (dim == 0) m->empty = true;
    if (dim <= 1) return;
    if (last >= 0 && m->to[last] == to * dim && m->from[last] == from * dim) {
        m->dims[last] *= dim;
        m->to[last] = to;
        m->from[last] = from;
        return;
    }
    m->dims[m->rank] = dim;
    m->to[m->rank] = to;
    m->from[m->rank] = from;
    m->rank++;
}

int zc_move_unit(int n, const uint64_t *bytes)
{
    uint64_t all = 16;
    int unit = 0;
    for (int i = 0; i < n; i++) all |= bytes[i];
    while (!(all >> unit & 1)) unit++;
    return unit;
}

static int log2_of(int64_t size)
{
    return zc_move_unit(1, (uint64_t[]){(uint64_t)size});
}

int zc_move_chosen(const zc_launch *l)
{
    return log2_of(l->kernel->config[0]);
}

void zc_move_strides(const zc_tensor *t, int64_t strides[ZC_MAX_RANK])
{
    int64_t step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= t->dims[d] ? t->dims[d] : 1;
    }
}

zc_status zc_move_check(zc_launch *l, const zc_tensor *t, int rank, const int64_t *dims,
                        const char *what)
{
    bool same = t->rank == rank;
    for (int d = 0; same && d < rank; d++) same = t->dims[d] == dims[d];
    if (same) return ZC_OK;
    char got[256], need[256];
    zc_tensor other = {.dtype = t->dtype, .rank = rank < ZC_MAX_RANK ? rank : ZC_MAX_RANK};
    memcpy(other.dims, dims, (size_t)other.rank * sizeof *dims);
    return zc_launch_fail(l, "wrong shape of %s (got %s, need %s)", what,
                          zc_tensor_type_text(t, got, sizeof got),
                          zc_tensor_type_text(&other, need, sizeof need));
}

zc_status zc_move_check_length(zc_launch *l, int64_t got, int64_t need, const char *what)
{
    if (got == need) return ZC_OK;
    return zc_launch_fail(l, "wrong %s (got %lld, need %lld)", what, (long long)got,
                          (long long)need);
}

zc_dim3 zc_move_grid(const zc_launch *l, int64_t total)
{
    (void)l;
    return (zc_dim3){zc_launch_blocks(total, BLOCK, 0), 1, 1};
}

/* ---- the two kinds of kernels ---- */

/* In units of 1 << unit bytes. The innermost axis is contiguous in both unless the unit is an
 * element. */
static zc_status run_strided(zc_launch *l, const zc_move *m, int64_t size, int unit, void *to,
                             const void *from)
{
    struct zc_move_params p;
    memset(&p, 0, sizeof p);
    int last = m->rank - 1;
    bool wide = (int64_t)1 << unit != size;
    p.in = from;
    p.out = to;
    p.scale = m->scale;
    p.zero = m->zero;
    p.rank = m->rank;
    p.total = 1;
    for (int d = 0; d < m->rank; d++) {
        bool inner = wide && d == last;
        int64_t dim = inner ? m->dims[d] * size >> unit : m->dims[d];
        p.dims[d] = zc_divisor_of(dim);
        p.total *= dim;
        /* exact: the unit divides them, negative ones too */
        p.to[d] = inner ? 1 : m->to[d] * size / ((int64_t)1 << unit);
        p.from[d] = inner ? 1 : m->from[d] * size / ((int64_t)1 << unit);
    }
    return zc_launch_kernel(l, unit, zc_move_grid(l, p.total), BLOCK, 0, &p, sizeof p);
}

/* The axis `across`, contiguous in the source, and the last one change places: what both kernels
 * need, but how much of the two a piece of work has. */
static void put_exchange(const zc_move *m, int across, void *to, const void *from,
                         struct zc_move_params *p)
{
    int last = m->rank - 1;
    memset(p, 0, sizeof *p);
    p->in = from;
    p->out = to;
    p->scale = m->scale;
    p->zero = m->zero;
    p->size[0] = m->dims[across];
    p->size[1] = m->dims[last];
    p->to_stride = m->to[across];
    p->from_stride = m->from[last];
    p->total = 1;
    for (int d = 0; d < last; d++) {
        if (d == across) continue;
        p->dims[p->rank] = zc_divisor_of(m->dims[d]);
        p->to[p->rank] = m->to[d];
        p->from[p->rank++] = m->from[d];
        p->total *= m->dims[d];
    }
}

/* size: of what lies in a tile. */
static zc_status run_transpose(zc_launch *l, const zc_move *m, int across, int64_t size, void *to,
                               const void *from)
{
    struct zc_move_params p;
    put_exchange(m, across, to, from, &p);
    int64_t side = size <= 2 ? 64 : 32;
    for (int i = 0; i < 2; i++) {
        int64_t tiles = (p.size[i] - 1) / side + 1;
        p.tiles[i] = zc_divisor_of(tiles);
        p.total *= tiles;
    }
    zc_dim3 grid = {zc_launch_blocks(p.total, 1, 0), 1, 1};
    return zc_launch_kernel(l, TRANSPOSE, grid, BLOCK, 0, &p, sizeof p);
}

static zc_status run_interleave(zc_launch *l, const zc_move *m, int across, void *to,
                                const void *from)
{
    struct zc_move_params p;
    put_exchange(m, across, to, from, &p);
    p.tiles[0] = zc_divisor_of(p.size[0] / PIXELS);
    p.total *= p.size[0] / PIXELS;
    return zc_launch_kernel(l, INTERLEAVE, zc_move_grid(l, p.total), BLOCK, 0, &p, sizeof p);
}

/* The axis that is contiguous in the source and not in the result, whose last one is; else -1. */
static int exchanged_axis(const zc_move *m)
{
    int last = m->rank - 1;
    if (last < 1 || m->to[last] != 1 || m->from[last] == 0 || m->from[last] == 1) return -1;
    for (int d = 0; d < last; d++)
        if (m->from[d] == 1 && m->dims[d] >= LEAST_SIDE) return d;
    return -1;
}

static bool by_pixels(const void *p, int64_t size)
{
    return size <= 4 && (uintptr_t)p % (uintptr_t)(PIXELS * size) == 0;
}

/* Are its planes few, its pixels dense, and all read and written by fours? */
static bool interleaves(const zc_move *m, int across)
{
    int last = m->rank - 1;
    bool fits = m->dims[last] >= 2 && m->dims[last] <= PLANES && m->to[across] == m->dims[last] &&
                m->dims[across] % PIXELS == 0;
    for (int d = 0; fits && d <= last; d++)
        if (d != across && (m->from[d] % PIXELS || (d < last && m->to[d] % PIXELS))) fits = false;
    return fits;
}

/* Elements of `in` bytes become some of `out` bytes. */
static zc_status run_elements(zc_launch *l, const zc_move *m, int64_t in, int64_t out, void *to,
                              const void *from)
{
    const int across = exchanged_axis(m);
    const int64_t held = in < out ? in : out; /* on the way; strides count elements */
    if (across >= 0 && m->dims[m->rank - 1] >= LEAST_SIDE)
        return run_transpose(l, m, across, held, to, from);
    if (across >= 0 && interleaves(m, across) && by_pixels(from, in) && by_pixels(to, out))
        return run_interleave(l, m, across, to, from);
    return run_strided(l, m, held, log2_of(held), to, from);
}

zc_status zc_move_run(zc_launch *l, const zc_move *m, int64_t size, void *to, const void *from)
{
    int last = m->rank - 1;
    if (m->empty) return ZC_OK;
    bool contiguous = m->rank == 0 || (m->to[last] == 1 && m->from[last] == 1);
    if (contiguous && m->rank <= 1)
        return to == from
                   ? ZC_OK
                   : zc_launch_copy(l, to, from, (size_t)(size * (m->rank ? m->dims[0] : 1)));
    if (!contiguous) return run_elements(l, m, size, size, to, from);
    uint64_t bytes[2 * ZC_MOVE_AXES + 3];
    int n = 0;
    bytes[n++] = (uint64_t)(uintptr_t)to;
    bytes[n++] = (uint64_t)(uintptr_t)from;
    bytes[n++] = (uint64_t)(m->dims[last] * size);
    for (int d = 0; d < last; d++) {
        bytes[n++] = (uint64_t)(m->to[d] * size);
        bytes[n++] = (uint64_t)(m->from[d] * size);
    }
    return run_strided(l, m, size, zc_move_unit(n, bytes), to, from);
}

zc_status zc_move_cast(zc_launch *l, const zc_move *m)
{
    const zc_tensor *in = &l->in[0], *out = &l->out[0];
    if (m->empty) return ZC_OK;
    return run_elements(l, m, zc_move_size(in), zc_move_size(out), out->data, in->data);
}

/* ---- parts of a whole ---- */

zc_status zc_parts_run(zc_launch *l, zc_parts *parts)
{
    struct zc_parts_params p;
    uint64_t bytes[3 * ZC_PARTS_MOST + 2];
    const zc_tensor *whole = parts->whole;
    int n = parts->n, axis = parts->axis;
    int64_t inner = zc_dims_span(whole->dims, axis + 1, whole->rank) * zc_move_size(whole);
    int64_t first = parts->first;
    parts->first = parts->at;
    parts->n = 0;
    while (n && !parts->data[n - 1]) n--;
    if (n == 0 || zc_tensor_numel(whole) == 0) return ZC_OK;
    memset(&p, 0, sizeof p);
    p.whole = (char *)whole->data + first * inner;
    p.joins = parts->joins;
    bytes[0] = (uint64_t)(uintptr_t)p.whole;
    bytes[1] = (uint64_t)(parts->pitch * inner);
    for (int i = 0; i < n; i++) {
        p.part[i] = parts->data[i];
        bytes[2 + 3 * i] = (uint64_t)(uintptr_t)p.part[i];
        bytes[3 + 3 * i] = (uint64_t)(parts->length[i] * inner);
        bytes[4 + 3 * i] = (uint64_t)(parts->pitches[i] * inner);
    }
    p.unit = zc_move_unit(2 + 3 * n, bytes);
    for (int i = 0; i < ZC_PARTS_MOST; i++) {
        p.first[i + 1] = p.first[i] + (i < n ? parts->length[i] * inner >> p.unit : 0);
        p.part_row[i] = i < n ? parts->pitches[i] * inner >> p.unit : 0;
    }
    p.row = parts->pitch * inner >> p.unit;
    p.parts = zc_divisor_of(p.first[n]);
    p.total = zc_dims_span(whole->dims, 0, axis) * p.first[n];
    return zc_launch_kernel(l, PARTS, zc_move_grid(l, p.total), BLOCK, 0, &p, sizeof p);
}

/* Does the next part lie where the whole has it? */
static bool in_place(const zc_parts *p, const void *data, int64_t length, int64_t pitch)
{
    const zc_tensor *whole = p->whole;
    return p->axis == whole->rank - 1 && pitch > length && pitch == p->pitch &&
           data == (char *)whole->data + p->at * zc_move_size(whole);
}

zc_status zc_parts_add(zc_launch *l, zc_parts *p, void *data, int64_t length, int64_t pitch)
{
    const bool wanted = data && !in_place(p, data, length, pitch);
    if (p->n == ZC_PARTS_MOST) ZC_TRY(zc_parts_run(l, p));
    p->at += length;
    if (!wanted && p->n == 0) {
        p->first = p->at;
        return ZC_OK;
    }
    p->data[p->n] = wanted ? data : NULL;
    p->pitches[p->n] = pitch;
    p->length[p->n++] = length;
    return ZC_OK;
}
