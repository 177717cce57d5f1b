#include "kernels/launcher.h"

#include "kernels/table.h"

enum { SCRATCH_ALIGN = 256 };

zc_status zc_launcher_issue(zc_launcher *r, const zc_image_kernel *kernel, zc_launch *l)
{
    r->kernel = kernel;
    r->scratch_used = 0;
    l->launcher = r;
    l->sm_count = kernel->processors ? kernel->processors
                  : r->image         ? r->image->device.sm_count
                                     : 1;
    return kernel->launch(l);
}

zc_status zc_launcher_dry(int family, const zc_pstep *step, const zc_pkernel *kernel, int sm_count,
                          zc_tensor *operands, zc_launcher *out)
{
    const zc_image_kernel image = {.launch = zc_families[family].launch, .processors = sm_count};
    zc_launch l = {.op = step->op,
                   .info = zc_op_get(step->op),
                   .attrs = step->attrs,
                   .nin = (int)step->nin,
                   .nout = (int)step->nout,
                   .in = operands,
                   .out = operands + step->nin,
                   .host = operands + step->nin + step->nout,
                   .kernel = kernel,
                   .is_static = kernel->is_static,
                   .subject = step->name};
    *out = (zc_launcher){.dry = true};
    return zc_launcher_issue(out, &image, &l);
}

static zc_status check(const zc_launch *l, int code)
{
    if (code == 0) return ZC_OK;
    return zc_device_check(&l->launcher->image->device, code, l->subject, l->diag);
}

typedef struct block_shape {
    uint32_t threads, smem, cluster;
} block_shape;

/* Every kernel waits for the one in front of it before it touches what that may write (nvrtc.c
 * checks it), so it may start before that one ends. */
static uint32_t put_attributes(const zc_device *d, uint32_t cluster, zc_cu_launch_attribute *out)
{
    uint32_t n = 0;
    if (d->arch < 90) return 0;
    out[n++] = (zc_cu_launch_attribute){.id = ZC_CU_LAUNCH_PROGRAMMATIC, .value.integer = 1};
    if (cluster > 1)
        out[n++] =
            (zc_cu_launch_attribute){.id = ZC_CU_LAUNCH_CLUSTER, .value.cluster = {cluster, 1, 1}};
    return n;
}

static zc_cu_launch_config config_of(const zc_launcher *r, zc_dim3 grid, block_shape block,
                                     zc_cu_launch_attribute attributes[2])
{
    return (zc_cu_launch_config){.grid_x = grid.x,
                                 .grid_y = grid.y,
                                 .grid_z = grid.z,
                                 .block_x = block.threads,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .shared_bytes = block.smem,
                                 .stream = r->stream,
                                 .attributes = attributes,
                                 .attribute_count =
                                     put_attributes(&r->image->device, block.cluster, attributes)};
}

static zc_status issue(zc_launch *l, int entry, zc_dim3 grid, block_shape block, const void *params,
                       size_t params_bytes)
{
    zc_launcher *r = l->launcher;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return ZC_OK;
    if (entry >= 0 && entry < ZC_ENTRIES_MAX) r->issued |= 1u << entry;
    if (r->dry) return ZC_OK;
    if (entry < 0 || entry >= ZC_ENTRIES_MAX || !r->kernel->entries[entry] || params_bytes > 4096 ||
        grid.y > 65535 || grid.z > 65535)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                       "bad launch (entry %d, grid %u x %u x %u, %zu bytes of "
                       "parameters)",
                       entry, grid.x, grid.y, grid.z, params_bytes);
    zc_device *d = &r->image->device;
    if (block.smem > (uint32_t)d->smem_max)
        return zc_fail(l->diag, ZC_ERR_DEVICE, l->subject,
                       "too much shared memory (need %u bytes, %s has %d)", block.smem, d->name,
                       d->smem_max);
    void *arguments[] = {(void *)(uintptr_t)params, &r->stamps};
    zc_cu_launch_attribute attributes[2];
    zc_cu_launch_config config = config_of(r, grid, block, attributes);
    r->launches++;
    r->open.stamps = r->stamps;
    r->open.kernel = r->kernel;
    return check(l, d->cu.launch(&config, r->kernel->entries[entry], arguments, NULL));
}

zc_status zc_launcher_close(zc_launcher *r, zc_diag *diag)
{
    if (!r->open.stamps) return ZC_OK;
    zc_device *d = &r->image->device;
    zc_cu_launch_attribute attributes[2];
    void *arguments[] = {&r->open.stamps};
    zc_cu_launch_config config =
        config_of(r, (zc_dim3){1, 1, 1}, (block_shape){1, 0, 1}, attributes);
    int code = d->cu.launch(&config, r->open.kernel->stamp_end, arguments, NULL);
    r->open.stamps = 0;
    return zc_device_check(d, code, "profile", diag);
}

/* Before a step's fill or copy. */
static zc_status close_step_in_front(const zc_launch *l)
{
    zc_launcher *r = l->launcher;
    return r->open.stamps == r->stamps ? ZC_OK : zc_launcher_close(r, l->diag);
}

zc_status zc_launch_kernel(zc_launch *l, int entry, zc_dim3 grid, uint32_t block, uint32_t smem,
                           const void *params, size_t params_bytes)
{
    return issue(l, entry, grid, (block_shape){block, smem, 1}, params, params_bytes);
}

zc_status zc_launch_configured(zc_launch *l, zc_dim3 grid, const void *params, size_t params_bytes)
{
    const zc_pkernel *k = l->kernel;
    return issue(l, 0, grid, (block_shape){k->threads, k->smem, k->cluster}, params, params_bytes);
}

zc_status zc_launch_clusters(zc_launch *l, int *count)
{
    zc_launcher *r = l->launcher;
    const zc_pkernel *k = l->kernel;
    zc_cu_launch_attribute attributes[2];
    *count = l->sm_count / (int)k->cluster;
    if (*count < 1) *count = 1;
    if (r->dry || k->cluster == 1) return ZC_OK;
    zc_cu_launch_config config = config_of(
        r, (zc_dim3){k->cluster, 1, 1}, (block_shape){k->threads, k->smem, k->cluster}, attributes);
    ZC_TRY(check(l, r->image->device.cu.most_clusters(count, r->kernel->entries[0], &config)));
    if (*count > 0) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_DEVICE, l->subject, "%s has no room for a cluster of %u blocks",
                   r->image->device.name, k->cluster);
}

/* Where windows may begin: what so many sides have bits for. */
static bool patches_ok(const zc_tensor_box *b)
{
    int sides = b->rank - 2, limit = sides == 1 ? 32768 : sides == 2 ? 128 : 16;
    bool ok = sides >= 1 && sides <= 3 && b->pixels <= 1024;
    for (int i = 0; ok && i < sides; i++)
        ok = b->first[i] >= -limit && b->first[i] < limit && b->beyond[i] >= -limit &&
             b->beyond[i] < limit && b->step[i] >= 1 && b->step[i] <= 8 &&
             b->dims[i + 1] + b->beyond[i] > b->first[i];
    return ok;
}

bool zc_tensor_box_ok(const zc_tensor_box *b)
{
    const int64_t longest = INT64_C(1) << 32, farthest = INT64_C(1) << 40;
    int boxed = b->pixels ? 1 : b->rank;
    bool ok = b->rank >= 1 && b->rank <= 5 && (uintptr_t)b->data % 16 == 0;
    for (int d = 0; ok && d < b->rank; d++)
        ok =
            b->dims[d] > 0 && b->dims[d] <= longest &&
            (d >= boxed || (b->box[d] > 0 && b->box[d] <= 256)) &&
            (d == 0 || (b->strides[d] % 16 == 0 && b->strides[d] >= 0 && b->strides[d] < farthest));
    return ok && (!b->pixels || patches_ok(b));
}

/* The driver's numbers of element types and of swizzled lines. */
static int element_type_of(const zc_tensor_box *b)
{
    enum { UINT8 = 0, UINT16 = 1, FLOAT16 = 6, FLOAT32 = 7, BFLOAT16 = 9, TFLOAT32 = 11 };
    if (b->dtype == ZC_F16) return FLOAT16;
    if (b->dtype == ZC_BF16) return BFLOAT16;
    if (b->dtype == ZC_F32) return b->tf32 ? TFLOAT32 : FLOAT32;
    return zc_dtype_bits(b->dtype) == 16 ? UINT16 : UINT8;
}

static int swizzle_of(const zc_tensor_box *b)
{
    enum { NONE = 0, OF_64 = 2, OF_128 = 3 };
    if (!b->swizzled) return NONE;
    return b->box[0] * zc_dtype_bits(b->dtype) == 64 * 8 ? OF_64 : OF_128;
}

zc_status zc_launch_tensor_map(zc_launch *l, const zc_tensor_box *b, zc_tensor_map *out)
{
    enum { NO_INTERLEAVE = 0, L2_256 = 3, ZEROS_OUTSIDE = 0 };
    uint32_t steps[5] = {1, 1, 1, 1, 1};
    uint64_t dims[5], strides[5];
    if (l->launcher->dry) return ZC_OK;
    if (!zc_tensor_box_ok(b))
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                       "the copy engine cannot address an operand");
    for (int d = 0; d < b->rank; d++) {
        dims[d] = (uint64_t)b->dims[d];
        if (d) strides[d - 1] = (uint64_t)b->strides[d];
    }
    const zc_cu *cu = &l->launcher->image->device.cu;
    const int type = element_type_of(b), swizzle = swizzle_of(b);
    uint32_t rank = (uint32_t)b->rank;
    void *data = (void *)(uintptr_t)b->data;
    if (!b->pixels)
        return check(l, cu->tensor_map(out, type, rank, data, dims, strides, b->box, steps,
                                       NO_INTERLEAVE, swizzle, L2_256, ZEROS_OUTSIDE));
    for (int i = 0; i + 2 < b->rank; i++) steps[i + 1] = (uint32_t)b->step[i];
    return check(l, cu->patches_map(out, type, rank, data, dims, strides, b->first, b->beyond,
                                    b->box[0], b->pixels, steps, NO_INTERLEAVE, swizzle, L2_256,
                                    ZEROS_OUTSIDE));
}

zc_status zc_launch_scratch(zc_launch *l, size_t bytes, void **out)
{
    zc_launcher *r = l->launcher;
    size_t end;
    if (r->resize && !r->dry) return r->more_scratch(r->user, bytes, out, l->diag);
    if (!zc_add_size(r->scratch_used, zc_align_up(bytes ? bytes : 1, SCRATCH_ALIGN), &end) ||
        end > SIZE_MAX / 2)
        return zc_fail_nomem(l->diag, "device scratch memory", bytes);
    if (!r->dry && end > r->scratch_bytes)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                       "scratch memory was not planned (need %zu, have %zu)", end,
                       r->scratch_bytes);
    *out = (void *)(uintptr_t)(r->dry ? SCRATCH_ALIGN : r->scratch + r->scratch_used);
    r->scratch_used = end;
    if (end > r->scratch_need) r->scratch_need = end;
    return ZC_OK;
}

zc_status zc_launch_counters(zc_launch *l, int64_t n, unsigned **out)
{
    zc_launcher *r = l->launcher;
    size_t bytes;
    if (n < 0 || !zc_mul_size((size_t)n, sizeof **out, &bytes))
        return zc_fail_nomem(l->diag, "counters", 0);
    if (!r->dry && bytes > r->counters_bytes)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                       "counters were not planned (need %zu bytes, have %zu)", bytes,
                       r->counters_bytes);
    *out = r->dry ? ZC_SOMEWHERE : (void *)(uintptr_t)r->counters;
    if (bytes > r->counters_need) r->counters_need = bytes;
    return ZC_OK;
}

zc_status zc_launch_fill(zc_launch *l, void *to, int byte, size_t bytes)
{
    zc_launcher *r = l->launcher;
    if (r->dry || bytes == 0) return ZC_OK;
    ZC_TRY(close_step_in_front(l));
    r->launches++;
    return check(l, r->image->device.cu.fill((zc_cu_ptr)(uintptr_t)to, (unsigned char)byte, bytes,
                                             r->stream));
}

zc_status zc_launch_copy(zc_launch *l, void *to, const void *from, size_t bytes)
{
    zc_launcher *r = l->launcher;
    if (r->dry || bytes == 0 || to == from) return ZC_OK;
    ZC_TRY(close_step_in_front(l));
    r->launches++;
    return check(l, r->image->device.cu.copy_within((zc_cu_ptr)(uintptr_t)to,
                                                    (zc_cu_ptr)(uintptr_t)from, bytes, r->stream));
}

zc_status zc_launch_fetch(zc_launch *l, void *to, const void *from, size_t bytes)
{
    zc_launcher *r = l->launcher;
    if (r->dry || bytes == 0) {
        for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = 0;
        return ZC_OK;
    }
    zc_device *d = &r->image->device;
    ZC_TRY(zc_launcher_close(r, l->diag));
    /* A copy to memory that is not page-locked waits inside the driver, without a limit. */
    if (r->limit_ms) ZC_TRY(zc_device_wait(d, r->stream, r->limit_ms, l->subject, l->diag));
    ZC_TRY(check(l, d->cu.copy_out(to, (zc_cu_ptr)(uintptr_t)from, bytes, r->stream)));
    return zc_device_wait(d, r->stream, r->limit_ms, l->subject, l->diag);
}

zc_status zc_launch_resize(zc_launch *l, int i, int rank, const int64_t *dims)
{
    zc_launcher *r = l->launcher;
    if (!r->resize)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject, "its result's shape is planned");
    return r->resize(r->user, i, rank, dims, &l->out[i], l->diag);
}

uint32_t zc_launch_blocks(int64_t n, int64_t per, int64_t most)
{
    int64_t blocks = n <= 0 ? 0 : (n - 1) / per + 1;
    int64_t limit = most > 0 && most < INT32_MAX ? most : INT32_MAX;
    return (uint32_t)(blocks < limit ? blocks : limit);
}

zc_status zc_launch_ints(zc_launch *l, int i, int64_t *v, int most, int *n)
{
    *n = -1;
    if (!zc_launch_has(l, i)) return ZC_OK;
    const zc_tensor *t = &l->host[i];
    int64_t count = zc_tensor_numel(t);
    if (count && !t->data)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject, "input %d is not in host memory", i);
    if (count > most)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "input %d is too long (got %lld, need at most %d)", i, (long long)count,
                       most);
    for (int64_t e = 0; e < count; e++) v[e] = zc_load_i64(t->dtype, t->data, e);
    *n = (int)count;
    return ZC_OK;
}

zc_status zc_launch_check_size(zc_launch *l, int i, int64_t need, const char *what)
{
    if (!zc_launch_has(l, i) || zc_tensor_numel(&l->in[i]) == need) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                   "%s has a wrong size (got %lld elements, need %lld)", what,
                   (long long)zc_tensor_numel(&l->in[i]), (long long)need);
}
