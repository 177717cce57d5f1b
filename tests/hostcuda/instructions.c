/* Warp matrix products, matrix loads and background copies, as PTX defines them. */
#include <stdlib.h>
#include <string.h>

#include "kernel_run.h"

#define ALL_LANES 0xffffffffu

static void need_full_warp(int line)
{
    if (hc_warp_now()->present != ALL_LANES)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "a warp instruction in a warp of fewer than 32");
}

/* ---- Matrix products ---- */

static int byte(unsigned bits, bool is_signed)
{
    return is_signed && bits >= 128 ? (int)bits - 256 : (int)bits;
}

/* The elements that a register of matrix a (or b) holds. */
static void elements(zc_host_kind kind, bool is_a, unsigned r, double *to)
{
    bool is_signed = kind == ZC_HOST_MMA_S8 || kind == (is_a ? ZC_HOST_MMA_S8U8 : ZC_HOST_MMA_U8S8);
    switch (kind) {
    case ZC_HOST_MMA_F16:
        for (unsigned i = 0; i < 2; i++) to[i] = hc_f16_value(r >> i * 16 & 0xffffu);
        break;
    case ZC_HOST_MMA_BF16:
        for (unsigned i = 0; i < 2; i++) to[i] = hc_bf16_value(r >> i * 16 & 0xffffu);
        break;
    case ZC_HOST_MMA_TF32: /* the last 13 bits are not looked at */
        to[0] = hc_bits_to_f32(r & 0xffffe000u);
        break;
    default:
        for (unsigned i = 0; i < 4; i++) to[i] = byte(r >> i * 8 & 0xffu, is_signed);
        break;
    }
}

static unsigned elements_per_register(zc_host_kind kind)
{
    if (kind == ZC_HOST_MMA_TF32) return 1;
    return kind == ZC_HOST_MMA_F16 || kind == ZC_HOST_MMA_BF16 ? 2 : 4;
}

/* A lane gave the registers a0 to a3, b0, b1. With E elements in a register, g = lane / 4 and
 * t = lane % 4, those of register i of a lie in row g + 8 * (i % 2), from column E * t + 4 * E *
 * (i / 2) on; those of b in column g, from row E * t + 4 * E * i on. */
static void gather(const hc_warp *w, unsigned turn, double a[16][32], double b[32][8])
{
    unsigned e = elements_per_register(w->kind);
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned r[6], g = lane / 4, t = lane % 4;
        memcpy(r, w->lanes[turn].slot[lane], sizeof r);
        for (unsigned i = 0; i < 4; i++)
            elements(w->kind, true, r[i], &a[g + 8 * (i % 2)][e * t + 4 * e * (i / 2)]);
        for (unsigned i = 0; i < 2; i++) {
            double column[4];
            elements(w->kind, false, r[4 + i], column);
            for (unsigned k = 0; k < e; k++) b[e * t + k + 4 * e * i][g] = column[k];
        }
    }
}

/* Sums in double: exact for bytes, rounded once to f32 with the accumulator for floats. */
static void multiply(hc_warp *w, unsigned turn)
{
    double a[16][32], b[32][8];
    unsigned depth = 8 * elements_per_register(w->kind);
    gather(w, turn, a, b);
    for (unsigned row = 0; row < 16; row++) {
        double sum[8] = {0};
        for (unsigned k = 0; k < depth; k++)
            for (unsigned column = 0; column < 8; column++) sum[column] += a[row][k] * b[k][column];
        memcpy(w->result[turn].f[row], sum, sizeof sum);
    }
}

/* A lane's element i of a product. */
static double result_of(const hc_warp *w, unsigned turn, unsigned i)
{
    const unsigned lane = hc_state_now()->lane;
    return w->result[turn].f[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
}

static void add_floats(const hc_warp *w, unsigned turn, float *d)
{
    for (unsigned i = 0; i < 4; i++) d[i] = (float)(d[i] + result_of(w, turn, i));
}

static void add_integers(const hc_warp *w, unsigned turn, unsigned *d)
{
    for (unsigned i = 0; i < 4; i++) d[i] += (unsigned)(int)result_of(w, turn, i);
}

void hc_mma(zc_host_kind kind, int line, void *d, const unsigned *a, const unsigned *b)
{
    unsigned registers[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    need_full_warp(line);
    const hc_warp *w = hc_warp_now();
    unsigned turn = hc_meet(kind, line, registers, sizeof registers, multiply);
    if (elements_per_register(kind) < 4)
        add_floats(w, turn, d);
    else
        add_integers(w, turn, d);
}

/* ---- Sparse matrix products ---- */

void hc_places(const hc_thread *t, int line, unsigned row, unsigned bits, unsigned place[2])
{
    place[0] = bits & 3;
    place[1] = bits >> 2;
    if (place[0] >= place[1])
        hc_fail_of(t, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "row %u stores elements %u and %u of four neighbours (need rising places)", row,
                   place[0], place[1]);
}

/* What a lane gave: registers of the stored elements and of b, and zc_mma_sparse's other two. */
typedef struct sparse_lane {
    unsigned a[4], b[4], places, second;
} sparse_lane;

/* Elements of a that are stored, and the columns of a in which they stand. */
typedef struct sparse_a {
    double v[16][16];
    unsigned column[16][16];
} sparse_a;

/* The stored elements lie as those of a product of 16 columns; element 2 * t of them and the next
 * are of the four neighbours from column 4 * t on. */
static void gather_stored(const hc_warp *w, const sparse_lane lanes[32], sparse_a *a)
{
    for (unsigned i = 0; i < 32 * 4; i++) {
        const unsigned lane = i / 4, r = i % 4, row = lane / 4 + 8 * (r % 2);
        const unsigned four = lane % 4 + 4 * (r / 2), at = four * 2;
        const sparse_lane *says = &lanes[lane / 4 * 4 + lanes[0].second * 2 + four / 4];
        unsigned place[2];
        elements(w->kind, true, lanes[lane].a[r], &a->v[row][at]);
        hc_places(hc_thread_now(), w->line, row, says->places >> (r % 2 * 16 + four % 4 * 4) & 15,
                  place);
        for (unsigned k = 0; k < 2; k++) a->column[row][at + k] = four * 4 + place[k];
    }
}

static void gather_b(const hc_warp *w, const sparse_lane lanes[32], double b[32][8])
{
    for (unsigned i = 0; i < 32 * 4; i++) {
        double column[2];
        elements(w->kind, false, lanes[i / 4].b[i % 4], column);
        for (unsigned k = 0; k < 2; k++) b[i / 4 % 4 * 2 + k + 8 * (i % 4)][i / 16] = column[k];
    }
}

/* What is not stored counts nothing, whatever b has there. */
static void multiply_sparse(hc_warp *w, unsigned turn)
{
    sparse_lane lanes[32];
    sparse_a a;
    double b[32][8];
    for (unsigned lane = 0; lane < 32; lane++)
        memcpy(&lanes[lane], w->lanes[turn].slot[lane], sizeof lanes[lane]);
    gather_stored(w, lanes, &a);
    gather_b(w, lanes, b);
    for (unsigned row = 0; row < 16; row++) {
        double sum[8] = {0};
        for (unsigned k = 0; k < 16; k++)
            for (unsigned column = 0; column < 8; column++)
                sum[column] += a.v[row][k] * b[a.column[row][k]][column];
        memcpy(w->result[turn].f[row], sum, sizeof sum);
    }
}

void hc_mma_sparse(zc_host_kind kind, int line, float *d, const unsigned *a, const unsigned *b,
                   unsigned places, unsigned second)
{
    sparse_lane own = {.places = places, .second = second};
    memcpy(own.a, a, sizeof own.a);
    memcpy(own.b, b, sizeof own.b);
    need_full_warp(line);
    const hc_warp *w = hc_warp_now();
    add_floats(w, hc_meet(kind, line, &own, sizeof own, multiply_sparse), d);
}

/* ---- Matrix loads ---- */

/* Row l % 8 of matrix l / 8 is where lane l points. */
static void load(hc_warp *w, unsigned turn)
{
    bool trans = w->kind == ZC_HOST_LDMATRIX_X2_TRANS || w->kind == ZC_HOST_LDMATRIX_X4_TRANS;
    unsigned matrices =
        w->kind == ZC_HOST_LDMATRIX_X4 || w->kind == ZC_HOST_LDMATRIX_X4_TRANS ? 4 : 2;
    for (unsigned m = 0; m < matrices; m++) {
        unsigned short rows[8][8];
        for (unsigned i = 0; i < 8; i++) {
            const void *row;
            memcpy(&row, w->lanes[turn].slot[m * 8 + i], sizeof row);
            memcpy(rows[i], row, sizeof rows[i]);
        }
        for (unsigned lane = 0; lane < 32; lane++) {
            unsigned g = lane / 4, t = lane % 4 * 2;
            unsigned low = trans ? rows[t][g] : rows[g][t];
            unsigned high = trans ? rows[t + 1][g] : rows[g][t + 1];
            w->result[turn].r[lane][m] = low | high << 16;
        }
    }
}

/* Returns its address. */
static unsigned check_shared(const void *p, unsigned size, int line)
{
    if (!hc_is_shared(p, size))
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line, "%p is not shared memory", p);
    if ((uintptr_t)p % size)
        hc_fail(HC_CUDA_ERROR_MISALIGNED_ADDRESS, line, "%p is not %u-byte aligned", p, size);
    return hc_smem_address(p, line);
}

void hc_aligned(int line, const void *p, unsigned bytes)
{
    if ((uintptr_t)p % bytes)
        hc_fail(HC_CUDA_ERROR_MISALIGNED_ADDRESS, line, "%p is not %u-byte aligned", p, bytes);
}

void hc_ldmatrix(zc_host_kind kind, int line, unsigned *r, const void *row)
{
    unsigned lane = hc_state_now()->lane;
    unsigned count = kind == ZC_HOST_LDMATRIX_X4 || kind == ZC_HOST_LDMATRIX_X4_TRANS ? 4 : 2;
    need_full_warp(line);
    hc_thread *t = hc_thread_now();
    if (lane < count * 8) hc_check_settled(t, t->block, check_shared(row, 16, line), 16, line);
    hc_warp *w = hc_warp_now();
    unsigned turn = hc_meet(kind, line, &row, sizeof row, load);
    memcpy(r, w->result[turn].r[lane], count * sizeof *r);
}

/* Lane l points to row l % 8 of matrix l / 8, and has of matrix m elements 2 * (l % 4) and the next
 * of row l / 4, or of that column. */
static void store(hc_warp *w, unsigned turn)
{
    const bool trans = w->kind == ZC_HOST_STMATRIX_X4_TRANS;
    for (unsigned i = 0; i < 32; i++) {
        unsigned char *row;
        memcpy(&row, w->lanes[turn].slot[i], sizeof row);
        for (unsigned e = 0; e < 8; e++) {
            const unsigned from = trans ? e * 4 + i % 8 / 2 : i % 8 * 4 + e / 2;
            const unsigned half = trans ? i % 2 : e % 2;
            memcpy(row + e * 2, w->lanes[turn].slot[from] + sizeof row + i / 8 * 4 + half * 2, 2);
        }
    }
}

void hc_stmatrix(zc_host_kind kind, int line, unsigned row, const unsigned *r)
{
    hc_thread *t = hc_thread_now();
    struct {
        void *row;
        unsigned r[4];
    } in;
    need_full_warp(line);
    hc_block *b = hc_block_at(t, row, line);
    if (b != t->block)
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line, "0x%x is memory of another block", row);
    in.row = hc_memory_at(t, b, row, 16, 16, line);
    hc_check_settled(t, b, row, 16, line);
    memcpy(in.r, r, sizeof in.r);
    hc_meet(kind, line, &in, sizeof in, store);
}

/* ---- Background copies ---- */

void hc_cp_async(int line, void *smem, const void *global, unsigned valid, unsigned size)
{
    hc_thread *t = hc_thread_now();
    unsigned address = check_shared(smem, size, line);
    if (valid) hc_check_grid_wait(line);
    if (valid > size) hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "cp.async of %u bytes", valid);
    if ((uintptr_t)global % size)
        hc_fail(HC_CUDA_ERROR_MISALIGNED_ADDRESS, line, "cp.async from %p", global);
    if (t->pending_count == t->pending_capacity) {
        unsigned capacity = t->pending_capacity ? t->pending_capacity * 2 : 16;
        hc_pending *grown = realloc(t->pending, capacity * sizeof *grown);
        if (!grown) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, line, "no memory for a background copy");
        t->pending = grown;
        t->pending_capacity = capacity;
    }
    hc_memory_await(t, t->block, address, size, false, line);
    t->pending[t->pending_count++] =
        (hc_pending){smem, global, valid, size, t->groups, address, line};
}

void hc_cp_async_commit(void)
{
    hc_thread_now()->groups++;
}

/* Copies of committed groups but the newest n take effect. */
void hc_cp_async_wait(int n)
{
    hc_thread *t = hc_thread_now();
    unsigned kept = 0;
    for (unsigned i = 0; i < t->pending_count; i++) {
        hc_pending *p = &t->pending[i];
        if (p->group + (unsigned)n >= t->groups) {
            t->pending[kept++] = *p;
            continue;
        }
        hc_memory_settle(t, t->block, p->address, p->size, p->line);
        if (p->valid) memcpy(p->dst, p->src, p->valid);
        memset((char *)p->dst + p->valid, 0, p->size - p->valid);
    }
    t->pending_count = kept;
}
