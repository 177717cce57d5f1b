/* Warpgroups: the registers of their threads, and their products (wgmma).
 *
 * A product begins when all warps have asked for it, and is done when one of them waits for it and
 * no thread can go on otherwise: after every copy that is under way. Each warp waits for itself, as
 * late: what a product reads must not change from when it was asked for until all four have waited,
 * or until a thread of one that has arrives at a barrier in shared memory. (What others do when
 * they learn of it takes longer than the warps of a product are apart; what the warp itself does
 * next does not.) From when it is asked for until its warp has waited for it a thread's sums are
 * NaN.
 *
 * A sparse product reads what is stored of A, and twice as much of B. What is not stored counts
 * nothing, whatever B has there; places that no tensor core takes, two alike or the higher one
 * first, fail the launch.
 *
 * Products are exact and summed in double, rounded to f32 once an instruction, as the warp's
 * products are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_run.h"

#define ROWS       64 /* of a product */
#define DEPTH      16 /* of 16 bits each; of others as many as have the same bytes */
#define DEPTH_MOST 32
#define FOUR       4    /* neighbours of a sparse A, of which two are stored */
#define LINE       128u /* bytes: eight of them are a swizzle's pattern */

static hc_quarter *waiting; /* for products, in the order they began to */

static hc_group *group_now(void)
{
    const hc_thread *t = hc_thread_now();
    return &t->block->warpgroups[t->index / HC_GROUP];
}

static void need_warpgroup(int line)
{
    if (hc_thread_now()->index / HC_GROUP >= hc_thread_count() / HC_GROUP)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "an instruction of a warpgroup of fewer than 128");
}

/* True for the last to arrive. */
static bool arrive(hc_group *g, zc_host_kind kind, int line, unsigned value)
{
    if (g->arrived && (g->kind != kind || g->line != line || g->value != value))
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "divergent warpgroup: other threads wait in the collective of line %d", g->line);
    g->kind = kind;
    g->line = line;
    g->value = value;
    if (++g->arrived < HC_GROUP) return false;
    g->arrived = 0;
    return true;
}

/* Its threads from `first` on. */
static void wake(const hc_group *g, unsigned first, unsigned count, hc_wait wait)
{
    hc_thread *t = &g->block->threads[(unsigned)(g - g->block->warpgroups) * HC_GROUP + first];
    for (unsigned i = 0; i < count; i++)
        if (t[i].wait == wait) hc_wake(&t[i]);
}

/* ---- Registers ---- */

#define REGISTERS 65536

/* What a thread has at its start, by the launch bounds. */
static unsigned registers_at_start(void)
{
    unsigned n = REGISTERS / hc_launch_now()->function->kernel->max_threads / 8 * 8;
    return n < 248 ? n : 248;
}

void hc_groups_prepare(hc_block *b)
{
    b->registers = 0;
    for (unsigned i = 0; i < (hc_thread_count() + HC_GROUP - 1) / HC_GROUP; i++) {
        hc_group *g = &b->warpgroups[i];
        hc_product *products = g->products;
        unsigned capacity = g->capacity;
        hc_sums *sums = g->sums;
        *g = (hc_group){.products = products,
                        .capacity = capacity,
                        .sums = sums,
                        .block = b,
                        .registers = registers_at_start()};
        for (unsigned quarter = 0; quarter < 4; quarter++) g->quarters[quarter].group = g;
        for (; sums; sums = sums->next) sums->threads = 0; /* an error leaves some */
    }
}

static void set_registers(hc_group *g, unsigned n)
{
    hc_block *b = g->block;
    b->registers += g->registers - n;
    g->registers = n;
    hc_wake_all(b, HC_FOR_REGISTERS, 0);
}

/* More registers come from those that other warpgroups have dropped. */
void hc_registers(int line, int n, int take)
{
    hc_block *b = hc_thread_now()->block;
    need_warpgroup(line);
    hc_group *g = group_now();
    if (n < 24 || n > 256 || n % 8)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "%d registers (need 24, 32 ... 256)", n);
    bool last = arrive(g, ZC_HOST_REGISTERS, line, (unsigned)n);
    if (!last) {
        hc_wait_for(HC_AT_GROUP, 0, line);
        return;
    }
    if (take ? (unsigned)n < g->registers : (unsigned)n > g->registers)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "%s %d registers of %u",
                take ? "zc_registers_take: up to" : "zc_registers_drop: down to", n, g->registers);
    while (b->registers + g->registers < (unsigned)n) hc_wait_for(HC_FOR_REGISTERS, 0, line);
    set_registers(g, (unsigned)n);
    wake(g, 0, HC_GROUP, HC_AT_GROUP);
}

/* ---- What is asked for ---- */

static unsigned field(uint64_t descriptor, unsigned from)
{
    return (unsigned)(descriptor >> from & 0x3fff) << 4;
}

/* An operand: lines of 128 bytes, in which 16 bytes are a chunk; rows along the summed axis,
 * `eights` bytes from one eight of them to the next, or across it steps of that axis with 64
 * columns each, `pitch` bytes from one 64 to the next. Or windows: rows 16 bytes apart, of which
 * the second chunk lies `pitch` bytes behind the first. */
typedef struct hc_operand {
    unsigned start, pitch, eights, rows;
    bool across, windows;
    unsigned chunks; /* of a row along the summed axis */
} hc_operand;

static hc_operand operand_of(uint64_t d, unsigned rows, bool across)
{
    return (hc_operand){field(d, 0), field(d, 16), field(d, 32), rows, across, d >> 62 == 0, 2};
}

static hc_operand left_of(const zc_host_product *p)
{
    return operand_of(p->a, ROWS, p->across_a);
}

static hc_operand right_of(const zc_host_product *p)
{
    hc_operand o = operand_of(p->b, p->columns, p->across);
    if (p->sparse) o.chunks = 4;
    return o;
}

/* Its chunks by lines, and how many of them a line has. */
static unsigned lines_of(const hc_operand *o)
{
    return o->across ? DEPTH : o->rows;
}

static unsigned chunks_of(const hc_operand *o)
{
    return o->across ? o->rows / 8 : o->chunks;
}

/* But of windows, the address's bits 4 to 6 are exchanged by bits 7 to 9. */
static unsigned chunk_at(const hc_operand *o, unsigned line, unsigned i)
{
    if (o->windows) return o->start + line * 16 + i * o->pitch;
    unsigned at = o->start + line / 8 * o->eights + line % 8 * LINE +
                  (o->across ? i / 8 * o->pitch + i % 8 * 16 : i * 16);
    return at ^ (at >> 7 & 7) << 4;
}

static void check_operand(const hc_thread *t, uint64_t d, hc_operand o, int line)
{
    const bool across = o.across;
    const bool close = o.eights == 8 * LINE;
    bool made = o.windows ? !across && o.eights == 128
                : across  ? d >> 62 == 1 && close
                          : d >> 62 == 1 && o.eights % LINE == 0 && o.pitch == 16;
    if (!made || (d >> 49 & 7))
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "a descriptor 0x%llx that zc_wgmma_%s does not make", (unsigned long long)d,
                across ? "across" : "along, spaced or windows");
    const unsigned unit = close ? 1024 : LINE; /* spaced eights begin at any line */
    bool aligned = o.windows || (across ? o.start % 1024 == 0 && o.pitch % 1024 == 0
                                        : o.start % unit < LINE && o.start % (o.chunks * 16) == 0);
    if (!aligned)
        hc_fail(HC_CUDA_ERROR_MISALIGNED_ADDRESS, line,
                "an operand at 0x%x whose first line is not 1024-byte aligned", o.start);
    for (unsigned i = 0; i < lines_of(&o); i++)
        for (unsigned chunk = 0; chunk < chunks_of(&o); chunk++)
            hc_check_shown(t, t->block, chunk_at(&o, i, chunk), 16, line);
}

typedef unsigned short hc_halves[256 * DEPTH_MOST];

static void read_operand(const hc_thread *t, const hc_operand *o, unsigned short *to, int line)
{
    const unsigned lines = lines_of(o), chunks = chunks_of(o);
    for (unsigned i = 0; i < lines; i++)
        for (unsigned chunk = 0; chunk < chunks; chunk++, to += 8)
            memcpy(to, hc_memory_at(t, t->block, chunk_at(o, i, chunk), 16, 16, line), 16);
}

/* Reads those in shared memory; returns a number that tells what they are. */
static uint64_t read_operands(const hc_thread *t, const zc_host_product *p, bool held, hc_halves a,
                              hc_halves b)
{
    const hc_operand oa = left_of(p), ob = right_of(p);
    read_operand(t, &ob, b, p->line);
    uint64_t sum = hc_memory_sum(b, p->columns * DEPTH * (p->sparse ? 2 : 1) * sizeof *b);
    if (held) return sum;
    read_operand(t, &oa, a, p->line);
    return sum ^ hc_memory_sum(a, ROWS * DEPTH * sizeof *a);
}

static hc_product *add_product(hc_group *g, const hc_thread *t, const zc_host_product *p, bool held)
{
    if (g->count == g->capacity) {
        unsigned capacity = g->capacity ? g->capacity * 2 : 8;
        hc_product *grown = realloc(g->products, capacity * sizeof *grown);
        if (!grown) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, p->line, "no memory for a product");
        g->products = grown;
        g->capacity = capacity;
    }
    if (!held) check_operand(t, p->a, left_of(p), p->line);
    check_operand(t, p->b, right_of(p), p->line);
    hc_halves a, b;
    hc_product *product = &g->products[g->count++];
    product->p = *p;
    product->operands = read_operands(t, p, held, a, b);
    product->group = t->product_group;
    product->seen = 0;
    product->done = product->left = false;
    product->sums = NULL;
    return product;
}

/* Those of products that the thread has asked for and not waited for; or others. */
static hc_sums *find_sums(hc_group *g, unsigned thread, const float *d, int line)
{
    hc_sums *unused = NULL;
    for (hc_sums *s = g->sums; s; s = s->next) {
        if (!s->threads)
            unused = s;
        else if (s->under_way[thread] && s->d[thread] == d)
            return s;
    }
    if (!unused) {
        unused = malloc(sizeof *unused);
        if (!unused) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, line, "no memory for sums");
        unused->next = g->sums;
        g->sums = unused;
    }
    unused->threads = 0;
    memset(unused->under_way, 0, sizeof unused->under_way);
    return unused;
}

/* The place of a thread's register i in the product. */
static unsigned row_of(unsigned thread, unsigned i)
{
    return 16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2 % 2);
}

static unsigned column_of(unsigned thread, unsigned i)
{
    return 8 * (i / 4) + 2 * (thread % 4) + i % 2;
}

/* The thread's registers hold nothing until it has waited. */
static void take_sums(hc_group *g, hc_product *product, unsigned thread, float *d)
{
    unsigned count = product->p.columns / 2;
    if (!product->sums) product->sums = find_sums(g, thread, d, product->p.line);
    hc_sums *s = product->sums;
    if (!s->under_way[thread]++) {
        s->threads++;
        s->d[thread] = d;
        for (unsigned i = 0; i < count; i++) s->v[row_of(thread, i)][column_of(thread, i)] = d[i];
        memset(d, 0xFF, count * sizeof *d);
    } else if (s->columns != product->p.columns) {
        hc_fail(HC_CUDA_ERROR_NOT_SUPPORTED, product->p.line,
                "%u columns of sums of which %u are under way", product->p.columns, s->columns);
    }
    s->columns = product->p.columns;
}

static bool is_same(const zc_host_product *a, const zc_host_product *b)
{
    return a->kind == b->kind && a->line == b->line && a->columns == b->columns &&
           a->across_a == b->across_a && a->across == b->across && a->add == b->add &&
           a->a == b->a && a->b == b->b && a->sparse == b->sparse;
}

void hc_wgmma(const zc_host_product *p, const unsigned *held, float *d)
{
    hc_thread *t = hc_thread_now();
    need_warpgroup(p->line);
    hc_group *g = group_now();
    if (!t->product_fence)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, p->line,
                "a product without a zc_wgmma_fence, first or since the last zc_wgmma_wait");
    unsigned at = t->products++ - g->done;
    hc_product *product = at == g->count ? add_product(g, t, p, held) : &g->products[at];
    if (!is_same(&product->p, p) || product->group != t->product_group)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, p->line,
                "the threads of a warpgroup ask for different products (others in line %d)",
                product->p.line);
    unsigned thread = t->index % HC_GROUP;
    take_sums(g, product, thread, d);
    product->held[thread] = held;
    product->places[thread] = p->places;
    if (p->places) product->word[thread] = *p->places;
    if (held) memcpy(product->was[thread], held, sizeof product->was[thread]);
    product->seen++;
}

void hc_wgmma_fence(void)
{
    hc_thread_now()->product_fence = true;
}

void hc_wgmma_commit(void)
{
    hc_thread_now()->product_group++;
}

static hc_quarter *quarter_now(void)
{
    return &group_now()->quarters[hc_thread_now()->index % HC_GROUP / 32];
}

/* All lanes wait for the products of groups before the one that each gave. */
static void begin_wait(hc_warp *w, unsigned turn)
{
    const hc_thread *t = hc_thread_now();
    const hc_group *g = group_now();
    hc_quarter *q = quarter_now(), **end = &waiting;
    unsigned groups;
    memcpy(&groups, w->lanes[turn].slot[0], sizeof groups);
    for (unsigned lane = 1; lane < 32; lane++)
        if (memcmp(w->lanes[turn].slot[lane], &groups, sizeof groups) != 0)
            hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, w->line,
                    "the lanes of a warp wait for different products");
    q->wanted = q->waited;
    while (q->wanted < t->products && g->products[q->wanted - g->done].group < groups) q->wanted++;
    if (q->wanted == q->waited) return;
    while (*end) end = &(*end)->next;
    q->next = NULL;
    *end = q;
}

void hc_wgmma_wait(int line, unsigned n)
{
    hc_thread *t = hc_thread_now();
    need_warpgroup(line);
    const hc_quarter *q = quarter_now();
    t->product_fence = false;
    unsigned groups = t->product_group > n ? t->product_group - n : 0;
    hc_meet(ZC_HOST_WGMMA_WAIT, line, &groups, sizeof groups, begin_wait);
    if (q->waited < q->wanted) hc_wait_for(HC_FOR_PRODUCTS, 0, line);
}

void hc_groups_thread_ends(hc_thread *t)
{
    const hc_group *g = &t->block->warpgroups[t->index / HC_GROUP];
    unsigned waited = g->quarters[t->index % HC_GROUP / 32].waited;
    if (waited < t->products)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, g->products[waited - g->done].p.line,
                "a thread ends before the product is waited for");
    if (t->products < g->done + g->count) {
        const hc_product *missed = &g->products[t->products - g->done];
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, missed->p.line,
                "%u of 128 threads asked for the product", missed->seen);
    }
}

/* ---- What is done ---- */

static float e4m3_value(unsigned bits)
{
    unsigned sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    if (magnitude == 0x7fu) return NAN;
    /* The exponent's field has moved, and is 120 too low; subnormals come out right, too. */
    return hc_bits_to_f32(sign | hc_f32_to_bits(hc_bits_to_f32(magnitude << 20) * 0x1p120f));
}

/* Bytes of an element; 32 of them are a line's part in a product. */
static unsigned bytes_of(zc_host_kind kind)
{
    return kind == ZC_HOST_WGMMA_TF32 ? 4 : kind >= ZC_HOST_WGMMA_E4M3 ? 1 : 2;
}

static bool is_integer(zc_host_kind kind)
{
    return kind >= ZC_HOST_WGMMA_S8;
}

/* Whether an operand, the left one or the right one, has signed bytes. */
static bool is_signed(zc_host_kind kind, bool left)
{
    return kind == ZC_HOST_WGMMA_S8 || kind == (left ? ZC_HOST_WGMMA_S8U8 : ZC_HOST_WGMMA_U8S8);
}

/* The n elements of an operand. */
static void values_of(zc_host_kind kind, bool left, const void *operand, unsigned n, double *to)
{
    const unsigned char *byte = operand;
    const unsigned short *half = operand;
    unsigned bits;
    switch (kind) {
    case ZC_HOST_WGMMA_F16:
        for (unsigned i = 0; i < n; i++) to[i] = hc_f16_value(half[i]);
        return;
    case ZC_HOST_WGMMA_BF16:
        for (unsigned i = 0; i < n; i++) to[i] = hc_bf16_value(half[i]);
        return;
    case ZC_HOST_WGMMA_TF32: /* the last 13 bits are not looked at */
        for (unsigned i = 0; i < n; i++) {
            memcpy(&bits, byte + (size_t)i * 4, 4);
            to[i] = hc_bits_to_f32(bits & 0xffffe000u);
        }
        return;
    case ZC_HOST_WGMMA_E4M3:
        for (unsigned i = 0; i < n; i++) to[i] = e4m3_value(byte[i]);
        return;
    default: {
        unsigned turn = is_signed(kind, left) ? 0x80 : 0;
        for (unsigned i = 0; i < n; i++) to[i] = (int)(byte[i] ^ turn) - (int)turn;
    }
    }
}

/* Sums are f32, those of integers 32-bit ones in the same registers. */
static double sum_value(zc_host_kind kind, float v)
{
    int whole;
    memcpy(&whole, &v, sizeof whole);
    return is_integer(kind) ? (double)whole : (double)v;
}

static float sum_register(zc_host_kind kind, double v)
{
    float out;
    unsigned whole;
    if (!is_integer(kind)) return (float)v;
    whole = (unsigned)(long long)v;
    memcpy(&out, &whole, sizeof out);
    return out;
}

/* A as its threads hold it: two elements a register, where a product of 16 columns has its sums. */
static void read_held(const hc_product *product, hc_halves a)
{
    for (unsigned thread = 0; thread < HC_GROUP; thread++)
        for (unsigned i = 0; i < 8; i++)
            a[row_of(thread, i) * DEPTH + column_of(thread, i)] =
                (unsigned short)(product->was[thread][i / 2] >> i % 2 * 16);
}

/* To where element (line, column) of [lines][columns] is element (column, line). */
static void transpose(const double *from, unsigned lines, unsigned columns, double *to)
{
    for (unsigned line = 0; line < lines; line++)
        for (unsigned column = 0; column < columns; column++)
            to[column * lines + line] = from[line * columns + column];
}

/* Where the two elements stand that are stored of a row's four neighbours, number `four`. */
static void read_places(const hc_thread *t, const hc_product *product, unsigned row, unsigned four,
                        unsigned place[2])
{
    const unsigned selector = (unsigned)product->p.sparse - 1;
    const unsigned thread = row / 16 * 32 + row % 8 * 4 + selector * 2 + four / 4;
    hc_places(t, product->p.line, row,
              product->word[thread] >> (row / 8 % 2 * 16 + four % 4 * 4) & 15, place);
}

/* stored is [ROWS][DEPTH], b [2 * DEPTH][columns]. */
static void multiply_sparse(const hc_thread *t, const hc_product *product, const double *stored,
                            const double *b, float v[ROWS][256])
{
    const zc_host_product *p = &product->p;
    const unsigned columns = p->columns;
    for (unsigned row = 0; row < ROWS; row++) {
        double sum[256] = {0};
        for (unsigned i = 0; p->add && i < columns; i++) sum[i] = (double)v[row][i];
        for (unsigned at = 0; at < DEPTH; at++) {
            unsigned place[2];
            read_places(t, product, row, at / 2, place);
            const double factor = stored[row * DEPTH + at];
            const double *factors = b + (size_t)(at / 2 * FOUR + place[at % 2]) * columns;
            for (unsigned i = 0; i < columns; i++) sum[i] += factor * factors[i];
        }
        for (unsigned i = 0; i < columns; i++) v[row][i] = (float)sum[i];
    }
}

/* a is [ROWS][depth], b [depth][columns]. Local memory only: sanitizers would find nothing here, at
 * a tenth of the speed. */
__attribute__((no_sanitize("address", "undefined"))) static void
multiply(const zc_host_product *p, unsigned depth, const double *restrict a,
         const double *restrict b, float v[ROWS][256])
{
    const unsigned columns = p->columns;
    for (unsigned row = 0; row < ROWS; row++) {
        double sum[256] = {0};
        for (unsigned i = 0; p->add && i < columns; i++) sum[i] = sum_value(p->kind, v[row][i]);
        for (unsigned k = 0; k < depth; k++) {
            const double factor = a[row * depth + k], *factors = b + (size_t)k * columns;
            for (unsigned i = 0; i < columns; i++) sum[i] += factor * factors[i];
        }
        for (unsigned i = 0; i < columns; i++) v[row][i] = sum_register(p->kind, sum[i]);
    }
}

static void check_memory(const hc_thread *t, const hc_product *product, hc_halves a, hc_halves b)
{
    if (read_operands(t, &product->p, product->held[0], a, b) != product->operands)
        hc_fail_of(t, HC_CUDA_ERROR_LAUNCH_FAILED, product->p.line,
                   "shared memory has changed since the product was asked for");
}

static void do_product(const hc_thread *t, hc_product *product)
{
    static hc_halves ha, hb;
    static double a[ROWS * DEPTH_MOST], b[256 * DEPTH_MOST], turned[256 * DEPTH_MOST];
    const zc_host_product *p = &product->p;
    const unsigned depth = 2 * DEPTH / bytes_of(p->kind), depth_b = p->sparse ? 2 * depth : depth;
    check_memory(t, product, ha, hb);
    if (product->held[0]) read_held(product, ha);
    values_of(p->kind, true, ha, ROWS * depth, p->across_a ? turned : a);
    if (p->across_a) transpose(turned, depth, ROWS, a);
    values_of(p->kind, false, hb, p->columns * depth_b, p->across ? b : turned);
    if (!p->across) transpose(turned, p->columns, depth_b, b);
    if (p->sparse)
        multiply_sparse(t, product, a, b, product->sums->v);
    else
        multiply(p, depth, a, b, product->sums->v);
    product->done = true;
}

static void check_registers(const hc_thread *t, const hc_product *product, bool same)
{
    if (!same)
        hc_fail_of(t, HC_CUDA_ERROR_LAUNCH_FAILED, product->p.line,
                   "registers of thread %u have changed since the product was asked for",
                   t->index % HC_GROUP);
}

/* A thread has waited: it gets its sums, unless a later product is under way on them. */
static void give_sums(const hc_thread *t, const hc_product *product)
{
    unsigned thread = t->index % HC_GROUP, count = product->p.columns / 2;
    hc_sums *s = product->sums;
    const unsigned *held = product->held[thread], *places = product->places[thread];
    check_registers(t, product,
                    !held || !memcmp(held, product->was[thread], sizeof product->was[thread]));
    check_registers(t, product, !places || *places == product->word[thread]);
    if (--s->under_way[thread]) return;
    for (unsigned i = 0; i < count; i++) {
        unsigned bits;
        memcpy(&bits, &s->d[thread][i], sizeof bits);
        check_registers(t, product, bits == ~0u);
    }
    for (unsigned i = 0; i < count; i++)
        s->d[thread][i] = s->v[row_of(thread, i)][column_of(thread, i)];
    s->threads--;
}

/* Those that all four warps have waited for. */
static void drop_products(hc_group *g)
{
    unsigned n = g->quarters[0].waited;
    for (unsigned i = 1; i < 4; i++)
        if (g->quarters[i].waited < n) n = g->quarters[i].waited;
    n -= g->done;
    if (!n) return;
    g->count -= n;
    g->done += n;
    memmove(g->products, g->products + n, g->count * sizeof *g->products);
}

static void finish(hc_quarter *q)
{
    hc_group *g = q->group;
    unsigned first = (unsigned)(q - g->quarters) * 32;
    const hc_thread *t =
        &g->block->threads[(unsigned)(g - g->block->warpgroups) * HC_GROUP + first];
    for (; q->waited < q->wanted; q->waited++) {
        hc_product *product = &g->products[q->waited - g->done];
        hc_halves a, b;
        if (!product->done)
            do_product(t, product);
        else if (!product->left)
            check_memory(t, product, a, b);
        for (unsigned lane = 0; lane < 32; lane++) give_sums(t + lane, product);
    }
    drop_products(g);
    wake(g, first, 32, HC_FOR_PRODUCTS);
}

static bool all_asked(const hc_quarter *q)
{
    const hc_group *g = q->group;
    for (unsigned i = q->waited; i < q->wanted; i++)
        if (g->products[i - g->done].seen < HC_GROUP) return false;
    return true;
}

bool hc_products_advance(void)
{
    hc_quarter **chosen = NULL;
    for (hc_quarter **at = &waiting; *at && (!chosen || hc_gpu.shuffle); at = &(*at)->next)
        if (all_asked(*at) && (!chosen || hc_draw(2))) chosen = at;
    if (!chosen) return false;
    hc_quarter *q = *chosen;
    *chosen = q->next;
    finish(q);
    return true;
}

void hc_products_leave(void)
{
    const hc_thread *t = hc_thread_now();
    hc_group *g = group_now();
    unsigned waited = quarter_now()->waited;
    for (unsigned i = 0; g->done + i < waited; i++) {
        hc_halves a, b;
        if (!g->products[i].left) check_memory(t, &g->products[i], a, b);
        g->products[i].left = true;
    }
}

void hc_products_clear(void)
{
    waiting = NULL;
}

void hc_groups_free(hc_block *b)
{
    for (unsigned i = 0; i < HC_MAX_THREADS / HC_GROUP; i++) {
        hc_group *g = &b->warpgroups[i];
        free(g->products);
        while (g->sums) {
            hc_sums *s = g->sums;
            g->sums = s->next;
            free(s);
        }
    }
}
