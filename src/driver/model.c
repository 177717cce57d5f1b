/* A model as the compiler gets it: its graph and its hash. */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/model.h"

static zc_status import_params(const zc_compile_params *p, zc_arena *arena, zc_import_params *out,
                               zc_diag *diag)
{
    zc_dim_override *dims = zc_arena_alloc(arena, p->dim_count, sizeof *dims);
    zc_shape_override *shapes = zc_arena_alloc(arena, p->shape_count, sizeof *shapes);
    if (!dims || !shapes) return zc_fail_nomem(diag, "parameters", 0);
    for (size_t i = 0; i < p->dim_count; i++)
        dims[i] = (zc_dim_override){.name = p->dims[i].name, .value = p->dims[i].value};
    for (size_t i = 0; i < p->shape_count; i++) {
        shapes[i] = (zc_shape_override){.input = p->shapes[i].input, .rank = p->shapes[i].rank};
        if (shapes[i].rank < 0 || shapes[i].rank > ZC_MAX_RANK)
            return zc_fail(diag, ZC_ERR_ARG, shapes[i].input,
                           "rank out of range (got %d, need at most %d)", shapes[i].rank,
                           ZC_MAX_RANK);
        memcpy(shapes[i].dims, p->shapes[i].dims, sizeof shapes[i].dims);
    }
    *out = (zc_import_params){.data_root = p->data_root,
                              .dims = dims,
                              .ndims = (int)p->dim_count,
                              .shapes = shapes,
                              .nshapes = (int)p->shape_count,
                              .strict = p->strict,
                              .max_memory = p->max_memory};
    return ZC_OK;
}

zc_status zc_model_import(const zc_model_source *model, const zc_compile_params *p,
                          const zc_custom_set *custom, bool weightless, zc_graph **out,
                          zc_diag *diag)
{
    zc_arena arena;
    zc_import_params params;
    zc_arena_init(&arena, 0);
    zc_status status = import_params(p, &arena, &params, diag);
    params.weightless = weightless;
    params.custom = custom;
    if (status == ZC_OK)
        status = model->path ? zc_import_file(model->path, &params, out, diag)
                             : zc_import_bytes(model->bytes, model->len, &params, out, diag);
    zc_arena_fini(&arena);
    return status;
}

static zc_status hash_file(const char *path, uint8_t out[32], zc_diag *diag)
{
    enum { CHUNK = 1 << 20 };
    int fd;
    uint64_t size;
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    uint8_t *chunk = zc_calloc(CHUNK, 1);
    zc_status status = chunk ? ZC_OK : zc_fail_nomem(diag, "hashing", CHUNK);
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    for (uint64_t at = 0; status == ZC_OK && at < size;) {
        size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        status = zc_file_pread(fd, chunk, n, at, path, diag);
        if (status == ZC_OK) sha256_update(&ctx, n, chunk);
        at += n;
    }
    sha256_digest(&ctx, 32, out);
    free(chunk);
    zc_file_close(fd);
    return status;
}

zc_status zc_model_hash(const zc_model_source *model, uint8_t out[32], zc_diag *diag)
{
    if (model->path) return hash_file(model->path, out, diag);
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, model->len, model->bytes);
    sha256_digest(&ctx, 32, out);
    return ZC_OK;
}
