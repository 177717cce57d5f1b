#include "kernels/launcher.h"

enum { SCRATCH_ALIGN = 256 };

zc_status zc_launcher_issue(zc_launcher *r, const zc_image_kernel *kernel, zc_launch *l)
{
    r->kernel = kernel;
    r->scratch_used = 0;
    l->launcher = r;
    l->sm_count = r->image ? r->image->device.sm_count : 1;
    return kernel->launch(l);
}

static zc_status check(const zc_launch *l, int code)
{
    if (code == 0) return ZC_OK;
    return zc_device_check(&l->launcher->image->device, code, l->subject, l->diag);
}

zc_status zc_launch_kernel(zc_launch *l, int entry, zc_dim3 grid, uint32_t block, uint32_t smem,
                           const void *params, size_t params_bytes)
{
    zc_launcher *r = l->launcher;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || r->dry) return ZC_OK;
    if (entry < 0 || entry >= ZC_ENTRIES_MAX || !r->kernel->entries[entry] || params_bytes > 4096 ||
        grid.y > 65535 || grid.z > 65535)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                       "bad launch (entry %d, grid %u x %u x %u, %zu bytes of "
                       "parameters)",
                       entry, grid.x, grid.y, grid.z, params_bytes);
    zc_device *d = &r->image->device;
    zc_cu_function function = r->kernel->entries[entry];
    if (smem > (uint32_t)d->smem_max)
        return zc_fail(l->diag, ZC_ERR_DEVICE, l->subject,
                       "too much shared memory (need %u bytes, %s has %d)", smem, d->name,
                       d->smem_max);
    void *arguments[] = {(void *)(uintptr_t)params};
    /* Every kernel waits for the one in front of it before it touches memory (nvrtc.c checks it).
     */
    zc_cu_launch_attribute overlap = {.id = ZC_CU_LAUNCH_PROGRAMMATIC, .value.integer = 1};
    zc_cu_launch_config config = {.grid_x = grid.x,
                                  .grid_y = grid.y,
                                  .grid_z = grid.z,
                                  .block_x = block,
                                  .block_y = 1,
                                  .block_z = 1,
                                  .shared_bytes = smem,
                                  .stream = r->stream,
                                  .attributes = &overlap,
                                  .attribute_count = d->arch >= 90};
    r->launches++;
    return check(l, d->cu.launch(&config, function, arguments, NULL));
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

zc_status zc_launch_fill(zc_launch *l, void *to, int byte, size_t bytes)
{
    zc_launcher *r = l->launcher;
    if (r->dry || bytes == 0) return ZC_OK;
    r->launches++;
    return check(l, r->image->device.cu.fill((zc_cu_ptr)(uintptr_t)to, (unsigned char)byte, bytes,
                                             r->stream));
}

zc_status zc_launch_copy(zc_launch *l, void *to, const void *from, size_t bytes)
{
    zc_launcher *r = l->launcher;
    if (r->dry || bytes == 0 || to == from) return ZC_OK;
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
