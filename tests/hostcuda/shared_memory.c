/* Shared memory of the blocks that run: its addresses, its static part, and what the copy engine
 * has been shown of it.
 *
 * A block's memory begins behind 1024 bytes that the system keeps, static first, as on the device;
 * an address is the block's rank and the place in there. */
#include <stdlib.h>
#include <string.h>

#include "kernel_run.h"

hc_shared hc_shared_memory;

void hc_memory_begin(const hc_launch *l)
{
    const zc_host_module *m = l->function->module->info;
    unsigned fixed = (unsigned)(m->shared_end - m->shared_begin);
    hc_shared_memory = (hc_shared){.section = m->shared_begin,
                                   .fixed = fixed,
                                   .dynamic = (HC_FIRST + fixed + 127) / 128 * 128,
                                   .moving = l->smem};
}

static unsigned memory_size(void)
{
    return hc_shared_memory.dynamic + hc_shared_memory.moving - HC_FIRST;
}

#define GRANULE 16 /* bytes of the smallest copy */

static unsigned granules(void)
{
    return (memory_size() + GRANULE - 1) / GRANULE;
}

/* Aligned in the host's memory as its addresses are. */
static bool allocate(hc_block *b)
{
    void *memory = NULL;
    unsigned before = hc_shared_memory.dynamic % 1024, fixed = hc_shared_memory.fixed,
             n = hc_shared_memory.moving;
    if (posix_memalign(&memory, 1024, before + (n ? n : 1)) != 0) return false;
    b->memory = memory;
    b->smem = b->memory + before;
    if (fixed) b->fixed = malloc(fixed);
    return !fixed || b->fixed;
}

bool hc_memory_prepare(hc_block *b)
{
    if (!b->memory && !allocate(b)) return false;
    if (hc_shared_memory.moving) memset(b->smem, 0xFF, hc_shared_memory.moving);
    if (b->fixed) memset(b->fixed, 0xFF, hc_shared_memory.fixed);
    if (b->shown) memset(b->shown, 0xFF, memory_size());
    memcpy(b->watched, hc_launch_now()->function->watched, sizeof b->watched);
    if (b->arriving) memset(b->arriving, 0, granules() * sizeof *b->arriving);
    return true;
}

void hc_memory_free(hc_block *b)
{
    free(b->memory);
    free(b->fixed);
    free(b->shown);
    free(b->arriving);
    b->memory = b->smem = b->fixed = b->shown = NULL;
    b->arriving = NULL;
}

void hc_memory_enter(hc_block *b)
{
    hc_shared *m = &hc_shared_memory;
    if (b && m->entered && m->entered->fixed) memcpy(m->entered->fixed, m->section, m->fixed);
    if (b && b->fixed) memcpy(m->section, b->fixed, m->fixed);
    m->entered = b;
}

/* ---- Addresses ---- */

bool hc_is_shared(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p, dynamic = (uintptr_t)hc_thread_now()->block->smem;
    uintptr_t begin = (uintptr_t)hc_shared_memory.section;
    size_t fixed = hc_shared_memory.fixed, moving = hc_shared_memory.moving;
    if (at >= dynamic && n <= moving && at - dynamic <= moving - n) return true;
    return at >= begin && n <= fixed && at - begin <= fixed - n;
}

unsigned hc_smem_address(const void *p, int line)
{
    const hc_block *b = hc_thread_now()->block;
    if (!hc_is_shared(p, 0))
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line, "%p is not shared memory", p);
    uintptr_t at = (uintptr_t)p, dynamic = (uintptr_t)b->smem;
    unsigned place = at >= dynamic && at - dynamic <= hc_shared_memory.moving
                         ? hc_shared_memory.dynamic + (unsigned)(at - dynamic)
                         : HC_FIRST + (unsigned)(at - (uintptr_t)hc_shared_memory.section);
    return b->rank << ZC_HOST_RANK_SHIFT | place;
}

hc_block *hc_block_at(const hc_thread *of, unsigned address, int line)
{
    const hc_cluster *c = of->block->cluster;
    unsigned rank = address >> ZC_HOST_RANK_SHIFT;
    if (rank >= c->size)
        hc_fail_of(of, HC_CUDA_ERROR_ILLEGAL_ADDRESS, line,
                   "0x%x is memory of block %u of a cluster of %u", address, rank, c->size);
    if (c->blocks[rank]->ended == hc_thread_count())
        hc_fail_of(of, HC_CUDA_ERROR_ILLEGAL_ADDRESS, line,
                   "0x%x is memory of block %u of the cluster, which has ended", address, rank);
    return c->blocks[rank];
}

void hc_memory_refuse(const hc_thread *of, unsigned address, unsigned n, bool there, unsigned align,
                      int line)
{
    if (!there)
        hc_fail_of(of, HC_CUDA_ERROR_ILLEGAL_ADDRESS, line,
                   "%u bytes from 0x%x are not shared memory", n, address);
    hc_fail_of(of, HC_CUDA_ERROR_MISALIGNED_ADDRESS, line, "0x%x is not %u-byte aligned", address,
               align);
}

/* ---- What the copy engine has been shown ----
 *
 * A second copy, brought up to date by a fence: which thread wrote what is not known, so the fence
 * of one shows what all have written. Where a block has much memory most of it is for the copy
 * engine alone, and every thread's fence would copy all: there, fences show the chunks that are
 * watched, which are those that once differed when the engine looked at them. That first time they
 * are taken for shown, in the block and in those that have begun before; later blocks and launches
 * of the kernel are held to it. */

#define CHUNK 1024u
#define MUCH  (32 * CHUNK)

/* False without memory. */
static bool need_shown(hc_block *b)
{
    if (b->shown) return true;
    b->shown = malloc(memory_size());
    if (!b->shown) return false;
    memset(b->shown, 0xFF, memory_size());
    return true;
}

void *hc_shown_at(hc_block *b, unsigned address)
{
    if (!need_shown(b)) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, 0, "no memory for shared memory");
    return b->shown + ((address & HC_PLACE) - HC_FIRST);
}

static void show(hc_block *b, unsigned from, unsigned n)
{
    unsigned left = hc_shared_memory.moving - from;
    memcpy(hc_shown_at(b, hc_shared_memory.dynamic + from), b->smem + from, n < left ? n : left);
}

void hc_async_fence(void)
{
    const hc_shared *m = &hc_shared_memory;
    hc_block *b = hc_thread_now()->block;
    if (m->fixed) memcpy(hc_shown_at(b, HC_FIRST), m->section, m->fixed);
    for (unsigned i = 0; i * CHUNK < m->moving; i++)
        if (m->moving <= MUCH || b->watched[i]) show(b, i * CHUNK, CHUNK);
}

/* Whether some of these bytes have not been watched; from now on they are. */
static bool is_new(hc_block *b, unsigned address, unsigned n)
{
    const hc_shared *m = &hc_shared_memory;
    unsigned first = ((address & HC_PLACE) - m->dynamic) / CHUNK;
    unsigned last = ((address & HC_PLACE) - m->dynamic + n - 1) / CHUNK;
    bool some = false;
    if (m->moving <= MUCH || (address & HC_PLACE) < m->dynamic) return false;
    for (unsigned i = first; i <= last; i++) {
        if (b->watched[i]) continue;
        b->watched[i] = hc_launch_now()->function->watched[i] = some = true;
        show(b, i * CHUNK, CHUNK);
    }
    return some;
}

void hc_check_shown(const hc_thread *of, hc_block *b, unsigned address, unsigned n, int line)
{
    hc_check_settled(of, b, address, n, line);
    const void *memory = hc_memory_at(of, b, address, n, 1, line);
    const void *shown = hc_shown_at(b, address);
    if (memcmp(memory, shown, n) == 0) return;
    if (is_new(b, address, n) && memcmp(memory, shown, n) == 0) return;
    hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
               "shared memory from 0x%x on was written without a zc_async_fence", address);
}

/* ---- Copies under way ---- */

void hc_check_settled(const hc_thread *of, hc_block *b, unsigned address, unsigned n, int line)
{
    unsigned first = ((address & HC_PLACE) - HC_FIRST) / GRANULE;
    unsigned last = ((address & HC_PLACE) - HC_FIRST + n - 1) / GRANULE;
    if (!b->arriving || n == 0) return;
    for (unsigned i = first; i <= last; i++)
        if (b->arriving[i])
            hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                       "the copy of line %d to shared memory at 0x%x is still under way",
                       b->arriving[i], HC_FIRST + i * GRANULE);
}

static void mark(hc_block *b, unsigned address, unsigned n, int line)
{
    int *first = b->arriving + ((address & HC_PLACE) - HC_FIRST) / GRANULE;
    for (unsigned i = 0; i < n / GRANULE; i++) first[i] = line;
}

void hc_memory_await(const hc_thread *of, hc_block *b, unsigned address, unsigned n, bool engine,
                     int line)
{
    void *memory = hc_memory_at(of, b, address, n, GRANULE, line);
    if (!b->arriving) b->arriving = calloc(granules(), sizeof *b->arriving);
    if (!b->arriving) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, line, "no memory for shared memory");
    if (engine)
        hc_check_shown(of, b, address, n, line);
    else
        hc_check_settled(of, b, address, n, line);
    memset(memory, 0xFF, n);
    if (engine) memset(hc_shown_at(b, address), 0xFF, n);
    mark(b, address, n, line);
}

void hc_memory_settle(const hc_thread *of, hc_block *b, unsigned address, unsigned n, int line)
{
    const unsigned char *memory = hc_memory_at(of, b, address, n, GRANULE, line);
    for (unsigned i = 0; i < n; i++)
        if (memory[i] != 0xFF)
            hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                       "shared memory at 0x%x was written while a copy to it was under way",
                       (address & HC_PLACE) + i);
    mark(b, address, n, 0);
}

uint64_t hc_memory_sum(const void *p, size_t n)
{
    uint64_t sum = n, word;
    for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, (const char *)p + i, sizeof word);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
    }
    return sum;
}
