#include <string.h>

#include "base/mem.h"
#include "io/npy.h"
#include "io/npy_types.h"

/* NumPy aligns the elements to this. */
#define DATA_ALIGN 64

static const struct {
    zc_dtype dtype;
    const char *descr;
} TYPES[] = {
    {ZC_BOOL, "|b1"}, {ZC_I8, "|i1"},  {ZC_I16, "<i2"}, {ZC_I32, "<i4"},   {ZC_I64, "<i8"},
    {ZC_U8, "|u1"},   {ZC_U16, "<u2"}, {ZC_U32, "<u4"}, {ZC_U64, "<u8"},   {ZC_F16, "<f2"},
    {ZC_F32, "<f4"},  {ZC_F64, "<f8"}, {ZC_C64, "<c8"}, {ZC_C128, "<c16"},
};

zc_dtype zc_npy_dtype(const char *descr, bool *swap)
{
    if (!descr[0] || !strchr("<>|=", descr[0])) return ZC_NONE;
    *swap = descr[0] == '>';
    for (size_t i = 0; i < ZC_COUNTOF(TYPES); i++)
        if (strcmp(descr + 1, TYPES[i].descr + 1) == 0) return TYPES[i].dtype;
    return ZC_NONE;
}

const char *zc_npy_descr(zc_dtype dtype)
{
    for (size_t i = 0; i < ZC_COUNTOF(TYPES); i++)
        if (TYPES[i].dtype == dtype) return TYPES[i].descr;
    return NULL;
}

bool zc_npy_has(zc_dtype dtype)
{
    return zc_npy_descr(dtype) != NULL;
}

static void put_header(const zc_tensor *t, const char *descr, zc_buf *out)
{
    zc_buf_append(out, ZC_NPY_MAGIC "\x01\x00\x00\x00", ZC_NPY_MAGIC_LEN + 4);
    zc_buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < t->rank; d++)
        zc_buf_printf(out, d ? ", %lld" : "%lld", (long long)t->dims[d]);
    zc_buf_puts(out, t->rank == 1 ? ",), }" : "), }");
    while (!out->failed && out->len % DATA_ALIGN != DATA_ALIGN - 1) zc_buf_puts(out, " ");
    zc_buf_puts(out, "\n");
    if (out->failed) return;
    const size_t len = out->len - ZC_NPY_MAGIC_LEN - 4; /* rank is bounded, so it fits 16 bits */
    out->data[8] = (char)(len & 0xFF);
    out->data[9] = (char)(len >> 8);
}

zc_status zc_npy_header(const zc_tensor *tensor, zc_buf *out, zc_diag *diag)
{
    const char *descr = zc_npy_descr(tensor->dtype);
    if (!descr)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, NULL,
                       "NumPy has no element type %s: write a .pb file instead",
                       zc_dtype_name(tensor->dtype));
    put_header(tensor, descr, out);
    return out->failed ? zc_fail_nomem(diag, "a .npy header", DATA_ALIGN) : ZC_OK;
}

zc_status zc_npy_write(zc_writer *writer, const zc_tensor *tensor, zc_diag *diag)
{
    size_t bytes = 0;
    if (!zc_tensor_bytes(tensor, &bytes))
        return zc_fail(diag, ZC_ERR_ARG, NULL, "the tensor's size overflows");
    zc_buf head = {0};
    zc_status status = zc_npy_header(tensor, &head, diag);
    if (status == ZC_OK) status = zc_writer_write(writer, head.data, head.len, diag);
    zc_buf_fini(&head);
    if (status == ZC_OK && bytes) status = zc_writer_write(writer, tensor->data, bytes, diag);
    return status;
}

zc_status zc_npy_save(const char *path, const zc_tensor *tensor, zc_diag *diag)
{
    zc_writer *writer = NULL;
    ZC_TRY(zc_writer_open(path, &writer, diag));
    const zc_status status = zc_npy_write(writer, tensor, diag);
    if (status == ZC_OK) return zc_writer_commit(&writer, diag);
    zc_writer_abort(&writer);
    return status;
}
