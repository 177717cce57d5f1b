#include "import/load.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sniff.h"

/* Room beyond the pre-scan's estimate, so that another version of protobuf-c may need a little more
 * than the one that the estimate was made after. */
#define BUDGET_SLACK ((uint64_t)64 << 10)

/* Bytes that one unpacking may still take, freed ones not given back. */
typedef struct budget {
    uint64_t left;
    bool exceeded;
    size_t refused; /* size of the allocation that failed */
} budget;

static void *budget_alloc(void *arg, size_t size)
{
    budget *b = arg;
    void *p = size <= b->left ? malloc(size ? size : 1) : NULL;
    if (p) {
        b->left -= size;
    } else {
        b->exceeded = size > b->left;
        b->refused = size;
    }
    return p;
}

static void budget_free(void *arg, void *p)
{
    (void)arg;
    free(p);
}

zc_status zc_proto_unpack(const uint8_t *data, size_t len, zc_wire_message root,
                          ProtobufCMessage **out, zc_diag *diag)
{
    /* A guess at what else it is counts only when it is not what it should be. */
    const zc_file_kind *kind = zc_sniff(data, len);
    uint64_t estimate = 0;
    const zc_status status = zc_wire_check(data, len, root, &estimate, kind ? NULL : diag);
    if (status != ZC_OK)
        return kind ? zc_fail_kind(diag, kind, ZC_WIRE_ROOTS[root].wanted) : status;
    budget b = {.left = 2 * estimate + BUDGET_SLACK};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &b};
    *out = protobuf_c_message_unpack(ZC_WIRE_ROOTS[root].type, &allocator, len, data);
    if (*out) return ZC_OK;
    if (b.exceeded)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL,
                       "unpacking needs more memory than foreseen (got %llu bytes foreseen)",
                       (unsigned long long)estimate);
    if (b.refused) return zc_fail_nomem(diag, ZC_WIRE_ROOTS[root].wanted, b.refused);
    return zc_fail(diag, ZC_ERR_FORMAT, NULL, "protobuf-c cannot unpack it as %s",
                   ZC_WIRE_ROOTS[root].wanted);
}

static zc_status read_open(int fd, uint64_t size, const char *wanted, uint8_t **out, zc_diag *diag)
{
    uint8_t head[ZC_SNIFF_BYTES];
    const size_t head_len = size < sizeof head ? (size_t)size : sizeof head;
    if (size == 0) return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the file is empty (need %s)", wanted);
    ZC_TRY(zc_file_pread(fd, head, head_len, 0, NULL, diag));
    const zc_file_kind *kind = zc_sniff(head, head_len);
    if (kind && kind->certain) return zc_fail_kind(diag, kind, wanted);
    if (size > ZC_WIRE_FILE_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL,
                       "the file is too large for protobuf (got %llu bytes, need at most %llu): "
                       "keep large tensors in external data files",
                       (unsigned long long)size, (unsigned long long)ZC_WIRE_FILE_MAX);
    uint8_t *data = zc_realloc(NULL, (size_t)size, 1);
    if (!data) return zc_fail_nomem(diag, "the file's contents", (size_t)size);
    const zc_status status = zc_file_pread(fd, data, size, 0, NULL, diag);
    if (status == ZC_OK)
        *out = data;
    else
        free(data);
    return status;
}

zc_status zc_proto_read(const char *path, const char *wanted, uint8_t **out, size_t *out_len,
                        zc_diag *diag)
{
    int fd = -1;
    uint64_t size = 0;
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    zc_diag_set_file(diag, path);
    const zc_status status = read_open(fd, size, wanted, out, diag);
    close(fd);
    if (status == ZC_OK) *out_len = (size_t)size;
    return status;
}

zc_status zc_onnx_load_bytes(const uint8_t *data, size_t len, Onnx__ModelProto **out, zc_diag *diag)
{
    ProtobufCMessage *message = NULL;
    ZC_TRY(zc_proto_unpack(data, len, ZC_WIRE_MODEL, &message, diag));
    *out = (Onnx__ModelProto *)message;
    return ZC_OK;
}

zc_status zc_onnx_load(const char *path, Onnx__ModelProto **out, zc_diag *diag)
{
    uint8_t *data = NULL;
    size_t len = 0;
    zc_diag_set_file(diag, NULL);
    ZC_TRY(zc_proto_read(path, ZC_WIRE_ROOTS[ZC_WIRE_MODEL].wanted, &data, &len, diag));
    const zc_status status = zc_onnx_load_bytes(data, len, out, diag);
    free(data);
    return status;
}

void zc_onnx_free(Onnx__ModelProto **model)
{
    if (!model || !*model) return;
    onnx__model_proto__free_unpacked(*model, NULL);
    *model = NULL;
}
