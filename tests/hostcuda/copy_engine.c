/* The copy engine (TMA): copies are done as late as possible, one at a time when no thread can go
 * on; a copy for several blocks comes to each by itself. From when a copy is asked for its place is
 * filled with 0xFF, as it may come at once, and it is an error to write there. A store reads its
 * source when a thread waits for that (it must be as it was when the store was asked for), and
 * writes when one waits for the end or the grid ends. With a seed, loads come in any order, and
 * some at once. */
#include <stdlib.h>
#include <string.h>

#include "kernel_run.h"
#include "tensor_map.h"

#define MAX_WIDTH   2048 /* bytes of a box's row: 256 elements of 8 */
#define MAX_UNENDED 64   /* stores that have been read: older ones end */

typedef struct hc_copy {
    struct hc_copy *next;
    const hc_thread *thread;
    hc_cluster *cluster;
    zc_host_copy c;
    hc_tensor_map map;
    hc_block *to;   /* of a load */
    unsigned phase; /* of its barrier, that was open */
    unsigned group;
    uint64_t source;     /* of shared memory: what it was when it was asked for */
    unsigned char *read; /* and a store's bytes, once read */
} hc_copy;

typedef struct hc_copies {
    hc_copy *first, **end;
    unsigned count;
} hc_copies;

static hc_copies loads, stores;

static hc_copy *add(hc_copies *list, const hc_copy *copy)
{
    hc_copy *new = malloc(sizeof *new);
    if (!new) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, copy->c.line, "no memory for a copy");
    *new = *copy;
    new->next = NULL;
    if (!list->first) list->end = &list->first;
    *list->end = new;
    list->end = &new->next;
    list->count++;
    return new;
}

static void drop(hc_copies *list, hc_copy **at)
{
    hc_copy *c = *at;
    *at = c->next;
    if (list->end == &c->next) list->end = at;
    list->count--;
    free(c->read);
    free(c);
}

/* ---- Boxes and patches: rows of one line of the innermost dimension ---- */

static unsigned width_of(const hc_tensor_map *m)
{
    return (unsigned)(m->im2col ? m->channels : m->box[0]) * m->element;
}

static unsigned steps_of(const hc_tensor_map *m, unsigned dim)
{
    return (m->box[dim] + m->step[dim] - 1u) / m->step[dim];
}

static unsigned rows_of(const hc_tensor_map *m)
{
    unsigned rows = 1;
    if (m->im2col) return m->pixels;
    for (unsigned i = 1; i < m->rank; i++) rows *= steps_of(m, i);
    return rows;
}

/* The part of a row that lies in the tensor: `bytes` (0: nothing) of device memory, `skip` bytes
 * from the row's begin. */
typedef struct hc_part {
    unsigned char *at;
    unsigned skip, bytes;
} hc_part;

/* Where windows may begin on side i: how many there are. */
static int64_t windows_of(const hc_tensor_map *m, unsigned i)
{
    return ((int64_t)m->last[i + 1] + m->upper[i] - m->lower[i]) / m->step[i + 1] + 1;
}

/* Coordinate i of a row: of a box, or of the window `row` windows after the copy's first, at its
 * tap. Leaves in *row how far the dimensions beyond go on. */
static int64_t coordinate(const hc_copy *c, unsigned i, unsigned *row)
{
    const hc_tensor_map *m = &c->map;
    int64_t first = c->c.at[i], n = *row;
    if (!m->im2col) {
        unsigned steps = steps_of(m, i);
        *row /= steps;
        return first + n % steps * m->step[i];
    }
    if (i + 1 == m->rank) return first + n;
    n += (first - m->lower[i - 1]) / m->step[i];
    *row = (unsigned)(n / windows_of(m, i - 1));
    return m->lower[i - 1] + n % windows_of(m, i - 1) * m->step[i] + c->c.tap[i - 1];
}

static hc_part part_of(const hc_copy *c, unsigned row)
{
    const hc_tensor_map *m = &c->map;
    uint64_t address = m->address;
    for (unsigned i = 1; i < m->rank; i++) {
        int64_t at = coordinate(c, i, &row);
        if (at < 0 || at > m->last[i]) return (hc_part){0};
        address += (uint64_t)at * m->stride[i - 1];
    }
    int64_t first = c->c.at[0], end = first + width_of(m) / m->element,
            size = (int64_t)m->last[0] + 1;
    int64_t from = first < 0 ? 0 : first, to = end > size ? size : end;
    if (from >= to) return (hc_part){0};
    hc_part p = {(unsigned char *)(uintptr_t)(address + (uint64_t)from * m->element),
                 (unsigned)(from - first) * m->element, (unsigned)(to - from) * m->element};
    if (!hc_on_device((uintptr_t)p.at, p.bytes))
        hc_fail_of(c->thread, HC_CUDA_ERROR_ILLEGAL_ADDRESS, c->c.line,
                   "the tensor map's %p (%u bytes) is not device memory", (void *)p.at, p.bytes);
    return p;
}

/* Bits 4 up to the span's are exchanged by those from 7 on. */
static unsigned swizzled(const hc_tensor_map *m, unsigned address)
{
    unsigned mask = m->swizzle ? m->swizzle / 16u - 1 : 0;
    return address ^ (address >> 7 & mask) << 4;
}

/* ---- What is done ---- */

static void write_shared(const hc_copy *c, hc_block *b, unsigned address, const void *from,
                         unsigned n)
{
    memcpy(hc_memory_at(c->thread, b, address, n, 16, c->c.line), from, n);
    memcpy(hc_shown_at(b, address), from, n);
}

/* Words to 10 binary digits behind the point, ties to even; NaN and infinity as they are. */
static void round_to_tf32(unsigned char *bytes, unsigned n)
{
    for (unsigned i = 0; i < n; i += 4) {
        uint32_t v;
        memcpy(&v, bytes + i, 4);
        if ((v & 0x7f800000) == 0x7f800000) continue;
        v = (v + 0xfff + (v >> 13 & 1)) & ~0x1fffu;
        memcpy(bytes + i, &v, 4);
    }
}

static void load_row(const hc_copy *c, unsigned row)
{
    unsigned char bytes[MAX_WIDTH] = {0};
    unsigned width = width_of(&c->map);
    hc_part p = part_of(c, row);
    if (p.bytes) memcpy(bytes + p.skip, p.at, p.bytes);
    if (c->map.tf32) round_to_tf32(bytes, width);
    for (unsigned i = 0; i < width; i += 16)
        write_shared(c, c->to, swizzled(&c->map, c->c.smem + row * width + i), bytes + i, 16);
}

static unsigned bytes_of(const hc_copy *c)
{
    return c->c.map ? rows_of(&c->map) * width_of(&c->map) : c->c.bytes;
}

static uint64_t sum_of(const hc_copy *c, unsigned address)
{
    unsigned n = bytes_of(c);
    return hc_memory_sum(hc_memory_at(c->thread, c->thread->block, address, n, 16, c->c.line), n);
}

static bool is_send(const hc_copy *c)
{
    return !c->c.map && !c->c.global;
}

static void load_bytes(const hc_copy *c)
{
    const void *from = c->c.global;
    if (is_send(c)) {
        hc_block *own = hc_block_at(c->thread, c->c.source, c->c.line);
        from = hc_memory_at(c->thread, own, c->c.source, c->c.bytes, 16, c->c.line);
        if (sum_of(c, c->c.source) != c->source)
            hc_fail_of(c->thread, HC_CUDA_ERROR_LAUNCH_FAILED, c->c.line,
                       "shared memory has changed since it was sent");
    }
    write_shared(c, c->to, c->c.smem, from, c->c.bytes);
}

static void do_load(const hc_copy *c)
{
    unsigned rows = c->c.map ? rows_of(&c->map) : 0;
    hc_memory_settle(c->thread, c->to, c->c.smem, bytes_of(c), c->c.line);
    for (unsigned row = 0; row < rows; row++) load_row(c, row);
    if (!c->c.map) load_bytes(c);
    hc_barrier_complete(c->thread, c->to, c->c.barrier, bytes_of(c), c->phase, c->c.line);
}

static void read_source(hc_copy *c)
{
    unsigned width = width_of(&c->map), rows = rows_of(&c->map);
    if (c->read) return;
    if (sum_of(c, c->c.smem) != c->source)
        hc_fail_of(c->thread, HC_CUDA_ERROR_LAUNCH_FAILED, c->c.line,
                   "shared memory has changed since the store was asked for");
    c->read = malloc((size_t)rows * width);
    if (!c->read) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, c->c.line, "no memory for a copy");
    for (unsigned at = 0; at < rows * width; at += 16)
        memcpy(c->read + at,
               hc_memory_at(c->thread, c->thread->block, swizzled(&c->map, c->c.smem + at), 16, 16,
                            c->c.line),
               16);
}

static void write_rows(const hc_copy *c)
{
    unsigned width = width_of(&c->map);
    for (unsigned row = 0; row < rows_of(&c->map); row++) {
        hc_part p = part_of(c, row);
        if (p.bytes) memcpy(p.at, c->read + (size_t)row * width + p.skip, p.bytes);
    }
}

bool hc_copies_advance(void)
{
    if (!loads.first) return false;
    hc_copy **at = &loads.first;
    for (unsigned skip = hc_gpu.shuffle ? hc_draw(loads.count) : 0; skip; skip--) at = &(*at)->next;
    do_load(*at);
    drop(&loads, at);
    return true;
}

/* ---- What is asked for ---- */

static hc_tensor_map map_at(int line, const void *map)
{
    hc_tensor_map m;
    if ((uintptr_t)map % HC_TENSOR_MAP_ALIGN)
        hc_fail(HC_CUDA_ERROR_MISALIGNED_ADDRESS, line, "a tensor map at %p (need %d-byte aligned)",
                map, HC_TENSOR_MAP_ALIGN);
    memcpy(&m, map, sizeof m);
    if (m.magic != HC_TENSOR_MAP_MAGIC)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "%p is no tensor map", map);
    return m;
}

void hc_tensor_prefetch(int line, const void *map)
{
    map_at(line, map);
}

/* A copy of patches begins where a window does; a tap's offsets have 16, 8 or 5 bits. */
static void check_window(const hc_copy *c)
{
    const hc_tensor_map *m = &c->map;
    unsigned bits = c->c.taps == 1 ? 16 : c->c.taps == 2 ? 8 : 5;
    for (unsigned i = 0; i < c->c.taps; i++) {
        int64_t at = (int64_t)c->c.at[i + 1] - m->lower[i];
        if (at < 0 || at % m->step[i + 1] || at / m->step[i + 1] >= windows_of(m, i))
            hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, c->c.line,
                    "a copy of patches from %d on, where no window begins", c->c.at[i + 1]);
        if (c->c.tap[i] >> bits)
            hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, c->c.line,
                    "a tap %u elements off (need less than 2^%u)", c->c.tap[i], bits);
    }
}

static void check_box(const hc_copy *c)
{
    const hc_tensor_map *m = &c->map;
    int line = c->c.line;
    if (m->im2col != (c->c.taps != 0))
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "a %s copy by a tensor map for %s",
                c->c.taps ? "patches'" : "tiled", m->im2col ? "im2col" : "tiles");
    if (m->rank != c->c.rank)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "%u coordinates for a tensor map of rank %u",
                c->c.rank, m->rank);
    if (m->swizzle && width_of(m) != m->swizzle)
        hc_fail(HC_CUDA_ERROR_NOT_SUPPORTED, line,
                "a box of %u bytes in a swizzle of %u: this machine needs the whole span",
                width_of(m), m->swizzle);
    check_window(c);
    hc_memory_at(c->thread, hc_block_at(c->thread, c->c.smem, line), c->c.smem, bytes_of(c), 128,
                 line);
}

static void check_bytes(const hc_copy *c)
{
    const zc_host_copy *z = &c->c;
    if (z->bytes == 0 || z->bytes % 16)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, z->line, "a copy of %u bytes (need a multiple of 16)",
                z->bytes);
    hc_memory_at(c->thread, hc_block_at(c->thread, z->smem, z->line), z->smem, z->bytes, 16,
                 z->line);
    if (!z->global) {
        hc_block *own = c->thread->block;
        if (hc_block_at(c->thread, z->source, z->line) != own)
            hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, z->line,
                    "0x%x is not memory of the block that sends", z->source);
        hc_memory_at(c->thread, own, z->source, z->bytes, 16, z->line);
        hc_check_shown(c->thread, own, z->source, z->bytes, z->line);
        return;
    }
    if ((uintptr_t)z->global % 16)
        hc_fail(HC_CUDA_ERROR_MISALIGNED_ADDRESS, z->line, "%p is not 16-byte aligned", z->global);
    if (!hc_on_device((uintptr_t)z->global, z->bytes))
        hc_fail(HC_CUDA_ERROR_ILLEGAL_ADDRESS, z->line, "%p (%u bytes) is not device memory",
                z->global, z->bytes);
}

/* The cluster's blocks that receive it, a bit each. */
static unsigned targets_of(const hc_copy *c)
{
    const zc_host_copy *z = &c->c;
    const hc_block *to = hc_block_at(c->thread, z->smem, z->line);
    if (hc_block_at(c->thread, z->barrier, z->line) != to)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, z->line,
                "a copy to 0x%x with a barrier of another block, at 0x%x", z->smem, z->barrier);
    unsigned targets = z->multicast ? z->multicast : 1u << to->rank;
    if (targets >> c->cluster->size)
        hc_fail(HC_CUDA_ERROR_ILLEGAL_ADDRESS, z->line, "a copy to blocks 0x%x of a cluster of %u",
                targets, c->cluster->size);
    return targets;
}

static hc_copy copy_of(const zc_host_copy *z)
{
    hc_thread *t = hc_thread_now();
    hc_copy c = {.thread = t, .cluster = t->block->cluster, .c = *z};
    if (z->map) c.map = map_at(z->line, z->map);
    if (z->map || z->global) hc_check_grid_wait(z->line);
    return c;
}

void hc_load(const zc_host_copy *z)
{
    hc_copy c = copy_of(z);
    if (z->map)
        check_box(&c);
    else
        check_bytes(&c);
    if (is_send(&c)) c.source = sum_of(&c, z->source);
    unsigned targets = targets_of(&c);
    for (unsigned rank = 0; rank < c.cluster->size; rank++) {
        if (!(targets >> rank & 1)) continue;
        c.to = hc_block_at(c.thread, rank << ZC_HOST_RANK_SHIFT, z->line);
        c.phase = hc_barrier_check(c.thread, c.to, z->barrier, z->line);
        hc_memory_await(c.thread, c.to, z->smem, bytes_of(&c), true, z->line);
        if (hc_gpu.shuffle && hc_draw(4) == 0)
            do_load(&c);
        else
            add(&loads, &c);
    }
}

void hc_store(const zc_host_copy *z)
{
    hc_copy c = copy_of(z);
    c.group = hc_thread_now()->store_group;
    check_box(&c);
    if (hc_block_at(c.thread, z->smem, z->line) != c.thread->block)
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, z->line,
                "0x%x is not memory of the block that stores", z->smem);
    hc_check_shown(c.thread, c.thread->block, z->smem, bytes_of(&c), z->line);
    c.source = sum_of(&c, z->smem);
    add(&stores, &c);
    if (stores.count <= MAX_UNENDED || !stores.first->read) return;
    write_rows(stores.first);
    drop(&stores, &stores.first);
}

void hc_store_commit(void)
{
    hc_thread_now()->store_group++;
}

void hc_store_wait(unsigned n, int read)
{
    hc_thread *t = hc_thread_now();
    for (hc_copy **at = &stores.first; *at;) {
        hc_copy *c = *at;
        if (c->thread == t && c->group + n < t->store_group) {
            read_source(c);
            if (!read) {
                write_rows(c);
                drop(&stores, at);
                continue;
            }
        }
        at = &c->next;
    }
}

void hc_copies_block_ends(hc_block *b)
{
    for (hc_copy *c = loads.first; c; c = c->next)
        if (c->to == b)
            hc_fail_of(c->thread, HC_CUDA_ERROR_LAUNCH_FAILED, c->c.line,
                       "a copy to block %u of the cluster is under way when that ends", b->rank);
    for (hc_copy *c = stores.first; c; c = c->next) {
        if (!c->thread || c->thread->block != b) continue;
        if (!c->read)
            hc_fail_of(c->thread, HC_CUDA_ERROR_LAUNCH_FAILED, c->c.line,
                       "the block ends before a store has read its memory (zc_bulk_wait_read)");
        c->thread = NULL;
    }
}

void hc_copies_finish(bool ok)
{
    while (loads.first) drop(&loads, &loads.first);
    while (stores.first) {
        if (ok) write_rows(stores.first);
        drop(&stores, &stores.first);
    }
}
