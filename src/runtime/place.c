#include "runtime/place.h"

#include <stdlib.h>

static int larger_first(const void *pa, const void *pb)
{
    const zc_placement *a = pa, *b = pb;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool overlap(const zc_placement *a, const zc_placement *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset of at least `from` at which item i meets no earlier item that is live with it.
 * Every bump jumps past one obstacle, so it ends. */
static bool lowest_free(const zc_placement *items, size_t i, size_t *offset, size_t *end)
{
    size_t at = 0;
    if (!zc_add_size(at, items[i].bytes, end)) return false;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < i; j++) {
            if (!overlap(&items[i], &items[j])) continue;
            size_t j_end = items[j].offset + zc_align_up(items[j].bytes, ZC_TENSOR_ALIGN);
            if (at >= j_end || *end <= items[j].offset) continue;
            at = j_end;
            if (!zc_add_size(at, items[i].bytes, end)) return false;
            moved = true;
        }
    }
    *offset = at;
    return true;
}

bool zc_place(zc_placement *items, size_t n, size_t *arena_bytes)
{
    *arena_bytes = 0;
    qsort(items, n, sizeof *items, larger_first);
    for (size_t i = 0; i < n; i++) {
        size_t end, room;
        if (items[i].bytes > SIZE_MAX / 2 || !lowest_free(items, i, &items[i].offset, &end))
            return false;
        if (!zc_add_size(end, ZC_TENSOR_ALIGN, &room)) return false;
        end = zc_align_up(end, ZC_TENSOR_ALIGN);
        if (end > *arena_bytes) *arena_bytes = end;
    }
    return true;
}

size_t zc_place_least(const zc_placement *items, size_t n)
{
    size_t most = 0;
    /* The sum grows only where an item begins. */
    for (size_t i = 0; i < n; i++) {
        size_t sum = 0;
        for (size_t j = 0; j < n; j++)
            if (items[j].first <= items[i].first && items[i].first <= items[j].last)
                sum += zc_align_up(items[j].bytes, ZC_TENSOR_ALIGN);
        if (sum > most) most = sum;
    }
    return most;
}
