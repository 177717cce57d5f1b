#include "runtime/gpu.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static bool allocate(zc_session *s)
{
    const zc_program *p = s->program;
    struct zc_gpu *g = s->gpu;
    uint32_t widest = 1;
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].nin + p->steps[i].nout > widest)
            widest = p->steps[i].nin + p->steps[i].nout;
    g->at = zc_calloc(p->nvalues, sizeof *g->at);
    g->on_device = zc_calloc(p->nvalues, sizeof *g->on_device);
    g->root_set = zc_calloc(p->nvalues, sizeof *g->root_set);
    g->rooms = zc_calloc(p->nvalues, sizeof *g->rooms);
    g->operands = zc_calloc(2 * (size_t)widest, sizeof *g->operands);
    g->pitches = zc_calloc(widest, sizeof *g->pitches);
    return g->at && g->on_device && g->root_set && g->rooms && g->operands && g->pitches;
}

static zc_status open_stream(zc_session *s, void *stream, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    ZC_TRY(zc_gpu_enter(s, diag));
    zc_status status = ZC_OK;
    g->stream = stream;
    if (!stream) {
        status = zc_device_check(d, d->cu.stream_create(&g->stream, ZC_CU_STREAM_NON_BLOCKING),
                                 "cuStreamCreate", diag);
        g->own_stream = status == ZC_OK;
    }
    void *fault = NULL;
    if (status == ZC_OK)
        status = zc_device_check(d, d->cu.host_alloc(&fault, sizeof *g->fault, ZC_CU_HOST_MAPPED),
                                 "fault word", diag);
    if (status == ZC_OK) {
        g->fault = fault;
        *g->fault = (zc_fault_word){0};
    }
    zc_gpu_leave(s);
    return status;
}

zc_status zc_gpu_create(zc_session *s, const zc_session_params *params, zc_diag *diag)
{
    zc_image *image;
    ZC_TRY(zc_plan_image(s->plan, params->ordinal, params->profile_graphs, &image, diag));
    struct zc_gpu *g = zc_calloc(1, sizeof *g);
    if (!g) return zc_fail_nomem(diag, "session", sizeof *g);
    s->gpu = g;
    g->image = image;
    g->graphs = !params->no_graphs && (!params->profile || params->profile_graphs);
    if (params->device_allocator) g->allocator = *params->device_allocator;
    if (!allocate(s)) return zc_fail_nomem(diag, "session", s->program->nvalues);
    memcpy(g->at, image->constants, s->program->nvalues * sizeof *g->at);
    for (uint32_t v = 0; v < s->program->nvalues; v++) g->on_device[v] = g->at[v] != 0;
    ZC_TRY(open_stream(s, params->stream, diag));
    if (params->profile) ZC_TRY(zc_gpu_profile_create(s, diag));
    g->launcher =
        (zc_launcher){.image = image, .stream = g->stream, .limit_ms = params->timeout_ms};
    return zc_gpu_stamp(s, 0, diag);
}

/* ---- device memory ---- */

/* What all of it is aligned to, as the driver's is. */
enum { DEVICE_ALIGN = 256 };

static void give_back(struct zc_gpu *g, zc_gpu_room *room)
{
    const zc_allocator *a = &g->allocator;
    g->memory -= room->p ? room->cap : 0;
    if (!a->free)
        zc_device_free(&g->image->device, &room->p);
    else if (room->p)
        a->free(a->user, (void *)(uintptr_t)room->p, room->cap ? room->cap : 1);
    *room = (zc_gpu_room){0};
}

static zc_status take(struct zc_gpu *g, size_t bytes, const char *what, zc_gpu_room *out,
                      zc_diag *diag)
{
    const zc_allocator *a = &g->allocator;
    const size_t some = bytes ? bytes : 1;
    if (!a->alloc) {
        ZC_TRY(zc_device_alloc(&g->image->device, some, what, &out->p, diag));
    } else {
        void *p = a->alloc(a->user, some, DEVICE_ALIGN);
        if (!p)
            return zc_fail(diag, ZC_ERR_NOMEM, what,
                           "device_allocator has no more (need %zu bytes)", some);
        out->p = (zc_cu_ptr)(uintptr_t)p;
    }
    out->cap = bytes;
    g->memory += bytes;
    if (out->p % DEVICE_ALIGN == 0) return ZC_OK;
    const unsigned long long at = out->p;
    give_back(g, out);
    return zc_fail(diag, ZC_ERR_ARG, "device_allocator",
                   "gave memory that is not aligned (got 0x%llx, need a multiple of %d)", at,
                   DEVICE_ALIGN);
}

static void free_device(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    give_back(g, &g->arena);
    give_back(g, &g->scratch);
    give_back(g, &g->counters);
    give_back(g, &g->stamped.room);
    for (size_t i = 0; i < g->pieces.len; i++) give_back(g, &g->pieces.data[i]);
    if (g->fault) (void)d->cu.host_free(g->fault);
    for (uint32_t v = 0; g->rooms && v < s->program->nvalues; v++) give_back(g, &g->rooms[v]);
    if (g->own_stream) (void)d->cu.stream_destroy(g->stream);
}

/* Nothing is freed on a lost device: the driver could wait for it. */
static void free_memory(zc_session *s)
{
    zc_device *d = &s->gpu->image->device;
    bool entered = zc_device_enter(d, NULL) == ZC_OK;
    if (entered) (void)zc_gpu_sync(s, "waiting for the GPU", NULL);
    for (zc_shapes *e = s->shapes.newest; e; e = e->older) zc_gpu_free_parts(s, e);
    zc_gpu_profile_destroy(s);
    if (entered && !d->lost) free_device(s);
    if (entered) zc_device_leave(d);
}

void zc_gpu_destroy(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    if (!g) return;
    if (g->image) free_memory(s);
    free(g->at);
    free(g->on_device);
    free(g->root_set);
    free(g->rooms);
    ZC_VEC_FINI(&g->pieces);
    free(g->operands);
    free(g->pitches);
    free(g->forced);
    free(g);
    s->gpu = NULL;
}

zc_status zc_gpu_alive(zc_session *s, zc_diag *diag)
{
    return zc_device_alive(&s->gpu->image->device, diag);
}

zc_status zc_gpu_sync(zc_session *s, const char *what, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    return zc_device_wait(&g->image->device, g->stream, g->launcher.limit_ms, what, diag);
}

zc_status zc_gpu_enter(zc_session *s, zc_diag *diag)
{
    return zc_device_enter(&s->gpu->image->device, diag);
}

void zc_gpu_leave(zc_session *s)
{
    zc_device_leave(&s->gpu->image->device);
}

/* ---- memory ---- */

static zc_status grow(zc_session *s, zc_gpu_room *room, size_t need, const char *what,
                      zc_diag *diag)
{
    if (room->p && need <= room->cap) return ZC_OK;
    if (room->p) {
        ZC_TRY(zc_gpu_sync(s, what, diag)); /* earlier runs may still read it */
        give_back(s->gpu, room);
    }
    return take(s->gpu, need, what, room, diag);
}

zc_status zc_gpu_place(zc_session *s, const zc_placement *items, size_t n, size_t need,
                       zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    ZC_TRY(grow(s, &g->arena, need, "working memory", diag));
    for (size_t i = 0; i < n; i++) {
        g->at[items[i].id] = g->arena.p + items[i].offset;
        g->on_device[items[i].id] = false;
        s->values[items[i].id].data = NULL;
    }
    return ZC_OK;
}

zc_status zc_gpu_room_fit(zc_session *s, zc_gpu_room *room, size_t bytes, zc_diag *diag)
{
    size_t need = room->cap ? bytes + bytes / 2 : bytes;
    if (room->p && bytes <= room->cap) return ZC_OK;
    return grow(s, room, need ? need : 1, "tensor", diag);
}

static size_t bytes_of(const zc_tensor *t)
{
    size_t bytes = 0;
    return zc_tensor_bytes(t, &bytes) ? bytes : 0;
}

zc_status zc_gpu_to_host(zc_session *s, uint32_t v, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    zc_tensor *t = &s->values[v];
    if (!v || t->dtype == ZC_NONE || t->data || s->program->values[v].kind == ZC_P_CONST)
        return ZC_OK;
    size_t bytes = bytes_of(t);
    ZC_TRY(zc_room_fit(s, &s->rooms[v], bytes, diag));
    if (bytes && g->on_device[v]) {
        /* A copy to memory that is not page-locked waits inside the driver, without a limit. */
        if (g->launcher.limit_ms) ZC_TRY(zc_gpu_sync(s, s->program->values[v].name, diag));
        ZC_TRY(zc_device_check(d, d->cu.copy_out(s->rooms[v].p, g->at[v], bytes, g->stream),
                               s->program->values[v].name, diag));
        ZC_TRY(zc_gpu_sync(s, s->program->values[v].name, diag));
    }
    t->data = s->rooms[v].p;
    return ZC_OK;
}

/* Values that no plan has placed (inputs in host memory, results of CPU steps in inner blocks) get
 * rooms. */
static zc_status device_home(zc_session *s, uint32_t v, size_t bytes, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    const zc_pvalue *value = &s->program->values[v];
    bool placed = value->kind == ZC_P_STEP && value->planned && g->at[v];
    if (placed) return ZC_OK;
    ZC_TRY(zc_gpu_room_fit(s, &g->rooms[v], bytes, diag));
    g->at[v] = g->rooms[v].p;
    return ZC_OK;
}

zc_status zc_gpu_to_device(zc_session *s, uint32_t v, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    if (!v || g->on_device[v] || s->values[v].dtype == ZC_NONE) return ZC_OK;
    const uint32_t root = s->roots[v];
    if (root != v && s->program->values[root].kind == ZC_P_INPUT) {
        /* A view of an input has no room of its own, and the input's may be one of a smaller run.
         */
        ZC_TRY(zc_gpu_to_device(s, root, diag));
        g->at[v] = g->at[root];
        g->on_device[v] = true;
        return ZC_OK;
    }
    size_t bytes = bytes_of(&s->values[v]);
    ZC_TRY(device_home(s, v, bytes, diag));
    if (bytes)
        ZC_TRY(zc_device_check(d, d->cu.copy_in(g->at[v], s->values[v].data, bytes, g->stream),
                               s->program->values[v].name, diag));
    g->on_device[v] = true;
    return ZC_OK;
}

void zc_gpu_wrote_host(zc_session *s, uint32_t v)
{
    s->gpu->on_device[v] = false;
}

void zc_gpu_wrote_device(zc_session *s, uint32_t v)
{
    s->gpu->on_device[v] = true;
    s->values[v].data = NULL;
}

zc_status zc_gpu_shape(zc_session *s, uint32_t v, int rank, const int64_t *dims,
                       const char *subject, zc_diag *diag)
{
    zc_tensor *t = &s->values[v];
    size_t bytes;
    if (rank < 0 || rank > ZC_MAX_RANK)
        return zc_fail(diag, ZC_ERR_LIMIT, subject, "rank out of range (got %d, need at most %d)",
                       rank, ZC_MAX_RANK);
    if (rank && dims != t->dims) memmove(t->dims, dims, (size_t)rank * sizeof *dims);
    t->dtype = s->program->values[v].dtype;
    t->rank = rank;
    t->data = NULL;
    if (!zc_tensor_bytes(t, &bytes))
        return zc_fail(diag, ZC_ERR_INPUT, subject,
                       "result has a negative dimension or is too large");
    ZC_TRY(zc_gpu_room_fit(s, &s->gpu->rooms[v], bytes, diag));
    s->gpu->at[v] = s->gpu->rooms[v].p;
    s->gpu->on_device[v] = false;
    return ZC_OK;
}
