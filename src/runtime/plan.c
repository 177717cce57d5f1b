#include "runtime/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sized.h"

_Static_assert(ZC_RANK_MAX == ZC_MAX_RANK, "public and internal rank limits agree");

const char *zc_elem_name(zc_elem elem)
{
    return zc_dtype_valid(elem) ? zc_dtype_name((zc_dtype)elem) : "none";
}

#define X(NAME, name, onnx, bits, cls)                                                             \
    _Static_assert((int)ZC_ELEM_##NAME == (int)ZC_##NAME, "public and internal numbers agree");
ZC_DTYPES(X)
#undef X

size_t zc_elem_bits(zc_elem elem)
{
    return zc_dtype_valid(elem) ? zc_dtype_bits((zc_dtype)elem) : 0;
}

size_t zc_view_size(const zc_view *view)
{
    if (!view || !zc_dtype_valid(view->elem) || view->rank < 0 || view->rank > ZC_RANK_MAX)
        return SIZE_MAX;
    zc_tensor t = {.dtype = (zc_dtype)view->elem, .rank = view->rank};
    size_t bytes;
    memcpy(t.dims, view->dims, sizeof t.dims);
    return zc_tensor_bytes(&t, &bytes) ? bytes : SIZE_MAX;
}

zc_elem zc_elem_parse(const char *name)
{
    return name ? (zc_elem)zc_dtype_parse(name) : 0;
}

/* ---- lifetimes ---- */

static void use_in_block(zc_plan *plan, uint32_t block, int32_t at);

static void use_value(zc_plan *plan, uint32_t v, int32_t at)
{
    if (v && plan->last[v] < at) plan->last[v] = at;
}

static void use_step(zc_plan *plan, const zc_pstep *step, int32_t at)
{
    for (uint32_t i = 0; i < step->nin; i++) use_value(plan, step->in[i], at);
    for (uint32_t i = 0; i < step->nout; i++) use_value(plan, step->out[i], at);
    for (uint32_t i = 0; i < step->nblocks; i++) use_in_block(plan, step->blocks[i], at);
}

/* Recursion is as deep as blocks nest, which the reader has bounded. */
static void use_in_block(zc_plan *plan, uint32_t block, int32_t at)
{
    const zc_pblock *b = &plan->program.blocks[block];
    for (uint32_t i = 0; i < b->nsteps; i++) use_step(plan, &plan->program.steps[b->steps[i]], at);
    for (uint32_t i = 0; i < b->nouts; i++) use_value(plan, b->outs[i], at);
}

static zc_status find_lifetimes(zc_plan *plan, zc_diag *diag)
{
    const zc_program *p = &plan->program;
    const zc_pblock *top = &p->blocks[0];
    plan->first = zc_arena_alloc(&plan->arena, p->nvalues, sizeof *plan->first);
    plan->last = zc_arena_alloc(&plan->arena, p->nvalues, sizeof *plan->last);
    if (!plan->first || !plan->last) return zc_fail_nomem(diag, "lifetimes", p->nvalues);
    for (uint32_t v = 0; v < p->nvalues; v++) plan->first[v] = plan->last[v] = -1;
    for (uint32_t i = 0; i < top->nsteps; i++) {
        const zc_pstep *step = &p->steps[top->steps[i]];
        for (uint32_t o = 0; o < step->nout; o++)
            if (step->out[o]) plan->first[step->out[o]] = (int32_t)i;
        use_step(plan, step, (int32_t)i);
    }
    for (uint32_t i = 0; i < top->nouts; i++) use_value(plan, top->outs[i], (int32_t)top->nsteps);
    return ZC_OK;
}

/* ---- loading ---- */

static void drop_bytes(uint8_t *bytes, size_t len, bool mapped)
{
    if (mapped)
        zc_file_unmap(bytes, len);
    else
        free(bytes);
}

/* Without a program yet; NULL: no memory. */
static zc_plan *new_plan(void)
{
    zc_plan *plan = zc_calloc(1, sizeof *plan);
    if (!plan) return NULL;
    atomic_init(&plan->refs, 1);
    atomic_init(&plan->images_pid, 0);
    pthread_mutex_init(&plan->images_lock, NULL);
    pthread_mutex_init(&plan->crew_lock, NULL);
    zc_packs_init(&plan->own_packs);
    plan->packs = &plan->own_packs;
    zc_arena_init(&plan->arena, 0);
    return plan;
}

/* Gives the plan, or on failure ends it. */
static zc_status end_loading(zc_plan *plan, zc_status status, zc_plan **out, zc_diag *diag)
{
    if (status == ZC_OK) status = find_lifetimes(plan, diag);
    if (status != ZC_OK) {
        zc_plan_destroy(&plan);
        return status;
    }
    for (uint32_t v = 0; v < plan->program.nvalues; v++)
        plan->weight_bytes += plan->program.values[v].bytes;
    *out = plan;
    return ZC_OK;
}

/* Takes the bytes; path may be NULL. */
static zc_status load(uint8_t *bytes, size_t len, bool mapped, const char *path, zc_plan **out,
                      zc_diag *diag)
{
    zc_plan *plan = new_plan();
    if (!plan) {
        drop_bytes(bytes, len, mapped);
        return zc_fail_nomem(diag, "plan", sizeof *plan);
    }
    plan->bytes = bytes;
    plan->len = len;
    plan->mapped = mapped;
    zc_status status = zc_program_read(bytes, len, &plan->arena, &plan->program, diag);
    if (status == ZC_OK && path) {
        plan->file = zc_arena_strdup(&plan->arena, path);
        if (!plan->file) status = zc_fail_nomem(diag, "plan", strlen(path));
    }
    /* Pages of a file are the system's already, and not to be written. */
    if (status == ZC_OK && !mapped) status = zc_plan_find_packable(plan, diag);
    return end_loading(plan, status, out, diag);
}

zc_status zc_plan_of_program(zc_program *program, zc_packs *packs, zc_plan **out, zc_diag *diag)
{
    zc_plan *plan = new_plan();
    if (!plan) return zc_fail_nomem(diag, "plan", sizeof *plan);
    plan->packs = packs;
    zc_status status = zc_program_complete(program, &plan->arena, diag);
    plan->program = *program;
    return end_loading(plan, status, out, diag);
}

static zc_status aligned_copy(const void *data, size_t len, uint8_t **out, zc_diag *diag)
{
    size_t room;
    if (!zc_add_size(len, 64, &room)) return zc_fail_nomem(diag, "plan", len);
    *out = aligned_alloc(64, zc_align_up(len ? len : 1, 64));
    if (!*out) return zc_fail_nomem(diag, "plan", len);
    if (data) memcpy(*out, data, len);
    return ZC_OK;
}

zc_status zc_plan_load_bytes(const void *data, size_t len, zc_plan **out, zc_diag *diag)
{
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    *out = NULL;
    if (!data) return zc_fail(diag, ZC_ERR_ARG, "data", "is NULL");
    uint8_t *copy;
    ZC_TRY(aligned_copy(data, len, &copy, diag));
    return load(copy, len, false, NULL, out, diag);
}

static zc_status read_plan_file(const char *path, uint8_t **bytes, size_t *len, zc_diag *diag)
{
    int fd;
    uint64_t size;
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    zc_status status = size > SIZE_MAX / 2 ? zc_fail(diag, ZC_ERR_LIMIT, NULL, "file too large")
                                           : aligned_copy(NULL, (size_t)size, bytes, diag);
    if (status == ZC_OK) {
        status = zc_file_pread(fd, *bytes, size, 0, path, diag);
        if (status != ZC_OK) free(*bytes);
    }
    zc_file_close(fd);
    *len = (size_t)size;
    return status;
}

static zc_status load_from(const char *path, bool mapped, zc_plan **out, zc_diag *diag)
{
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    *out = NULL;
    if (!path) return zc_fail(diag, ZC_ERR_ARG, "path", "is NULL");
    uint8_t *bytes;
    size_t len;
    zc_diag_lend_file(diag, path);
    zc_status status = (mapped ? zc_file_map : read_plan_file)(path, &bytes, &len, diag);
    if (status == ZC_OK) status = load(bytes, len, mapped, path, out, diag);
    zc_diag_lend_file(diag, NULL);
    return status;
}

zc_status zc_plan_load_file(const char *path, zc_plan **out, zc_diag *diag)
{
    return load_from(path, false, out, diag);
}

zc_status zc_plan_map_file(const char *path, zc_plan **out, zc_diag *diag)
{
    return load_from(path, true, out, diag);
}

void zc_plan_retain(zc_plan *plan)
{
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
}

void zc_plan_destroy(zc_plan **planp)
{
    if (!planp || !*planp) return;
    zc_plan *plan = *planp;
    *planp = NULL;
    if (atomic_fetch_sub_explicit(&plan->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < plan->images.len; i++) zc_image_destroy(&plan->images.data[i]);
    ZC_VEC_FINI(&plan->images);
    pthread_mutex_destroy(&plan->images_lock);
    pthread_mutex_destroy(&plan->crew_lock);
    zc_packs_fini(&plan->own_packs);
    zc_arena_fini(&plan->arena);
    drop_bytes(plan->bytes, plan->len, plan->mapped);
    free(plan);
}

static zc_status find_image(zc_plan *plan, int ordinal, bool stamped, zc_image **out, zc_diag *diag)
{
    for (size_t i = 0; i < plan->images.len; i++) {
        *out = plan->images.data[i];
        if ((*out)->device.ordinal == ordinal && (*out)->stamped == stamped)
            return zc_device_alive(&(*out)->device, diag);
    }
    ZC_TRY(zc_packs_keep(plan->packs, diag)); /* the upload reads the originals */
    ZC_TRY(zc_image_create(&plan->program, ordinal, stamped, out, diag));
    if (ZC_VEC_PUSH(&plan->images, *out)) return ZC_OK;
    zc_image_destroy(out);
    return zc_fail_nomem(diag, "device image", sizeof **out);
}

/* A child of the process that used the GPU never gets to the lock, which may be held for ever by a
 * thread that it does not have: no use of a GPU survives fork(). */
static zc_status claim_images(zc_plan *plan, zc_diag *diag)
{
    int owner = 0;
    const int own = (int)getpid();
    if (atomic_compare_exchange_strong(&plan->images_pid, &owner, own) || owner == own)
        return ZC_OK;
    return zc_fail(diag, ZC_ERR_FORKED, "device",
                   "the plan was used on a GPU before fork() in another process");
}

zc_status zc_plan_image(zc_plan *plan, int ordinal, bool stamped, zc_image **out, zc_diag *diag)
{
    ZC_TRY(claim_images(plan, diag));
    pthread_mutex_lock(&plan->images_lock);
    zc_status status = find_image(plan, ordinal, stamped, out, diag);
    pthread_mutex_unlock(&plan->images_lock);
    return status;
}

/* ---- questions ---- */

static void hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

zc_status zc_plan_info_fill(const zc_plan *plan, zc_plan_info *out)
{
    if (!plan || !out) return ZC_ERR_ARG;
    const zc_program *p = &plan->program;
    zc_plan_info own = {.zc_version = p->version,
                        .target = p->target,
                        .inputs = p->blocks[0].nparams,
                        .outputs = p->blocks[0].nouts,
                        .steps = p->blocks[0].nsteps,
                        .weight_bytes = plan->weight_bytes};
    zc_packs_count(plan->packs, &own.packed_bytes, &own.released_bytes);
    hex(p->model_sha256, sizeof p->model_sha256, own.model_sha256);
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_plan_info, released_bytes), out, NULL);
}

static zc_status give_io(const zc_program *p, uint32_t v, const char *name, zc_io_info *out,
                         zc_diag *diag)
{
    const zc_pvalue *value = &p->values[v];
    zc_tensor t = {.dtype = value->dtype, .rank = value->rank};
    zc_io_info own = {.name = name, .elem = (zc_elem)t.dtype, .rank = t.rank, .bytes = -1};
    bool known = t.rank >= 0;
    size_t bytes;
    for (int d = 0; d < value->rank; d++) {
        known = known && zc_dim_is_const(value->dims[d]);
        own.dims[d] = zc_dim_is_const(value->dims[d]) ? value->dims[d].k : -1;
        own.dim_texts[d] = value->dim_texts[d];
        t.dims[d] = own.dims[d];
    }
    if (known && zc_tensor_bytes(&t, &bytes)) own.bytes = (int64_t)bytes;
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_io_info, dim_texts), out, diag);
}

zc_status zc_plan_input_fill(const zc_plan *plan, size_t i, zc_io_info *out, zc_diag *diag)
{
    if (!plan || !out) return zc_fail(diag, ZC_ERR_ARG, plan ? "out" : "plan", "is NULL");
    const zc_pblock *top = &plan->program.blocks[0];
    if (i >= top->nparams)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such input (got %zu, need < %u)", i,
                       top->nparams);
    return give_io(&plan->program, top->params[i], plan->program.input_names[i], out, diag);
}

zc_status zc_plan_output_fill(const zc_plan *plan, size_t i, zc_io_info *out, zc_diag *diag)
{
    if (!plan || !out) return zc_fail(diag, ZC_ERR_ARG, plan ? "out" : "plan", "is NULL");
    const zc_pblock *top = &plan->program.blocks[0];
    if (i >= top->nouts)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such output (got %zu, need < %u)", i, top->nouts);
    return give_io(&plan->program, top->outs[i], plan->program.output_names[i], out, diag);
}

static zc_status find(const char *const *names, uint32_t n, const char *name, const char *what,
                      size_t *i, zc_diag *diag)
{
    if (!name || !i) return zc_fail(diag, ZC_ERR_ARG, name ? "i" : "name", "is NULL");
    for (*i = 0; *i < n; ++*i)
        if (strcmp(names[*i], name) == 0) return ZC_OK;
    *i = 0;
    if (n == 0) return zc_fail(diag, ZC_ERR_ARG, name, "no such %s (the plan has none)", what);
    return zc_fail(diag, ZC_ERR_ARG, name, "no such %s (the plan has %u, the first is " ZC_NAME ")",
                   what, n, names[0]);
}

zc_status zc_plan_find_input(const zc_plan *plan, const char *name, size_t *i, zc_diag *diag)
{
    if (!plan) return zc_fail(diag, ZC_ERR_ARG, "plan", "is NULL");
    const zc_program *p = &plan->program;
    return find(p->input_names, p->blocks[0].nparams, name, "input", i, diag);
}

zc_status zc_plan_find_output(const zc_plan *plan, const char *name, size_t *i, zc_diag *diag)
{
    if (!plan) return zc_fail(diag, ZC_ERR_ARG, "plan", "is NULL");
    const zc_program *p = &plan->program;
    return find(p->output_names, p->blocks[0].nouts, name, "output", i, diag);
}
