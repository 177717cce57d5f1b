#include "base/sniff.h"

#include <string.h>

#include "base/mem.h"

typedef struct magic {
    size_t off, len;
    const char *bytes;
    zc_file_kind kind;
} magic;

/* Only a magic at the very beginning is certain: the others' bytes may occur in a protobuf. */
#define MAGIC(off, bytes, name, hint)                                                              \
    {                                                                                              \
        off, sizeof(bytes) - 1, bytes,                                                             \
        {                                                                                          \
            name, hint, (off) == 0                                                                 \
        }                                                                                          \
    }

static const magic MAGICS[] = {
    MAGIC(0, "\x89ZCP", "a zc plan", "give it to `zc run`"),
    MAGIC(0, "\x93NUMPY", "a .npy array", "give it to `zc run` as an input"),
    MAGIC(0, "version https://git-lfs", "a Git LFS pointer", "fetch the real file: git lfs pull"),
    MAGIC(0, "GGUF", "a GGUF model", NULL),
    MAGIC(0, "ftrt", "a TensorRT engine", "give the ONNX model that it was built from"),
    MAGIC(0, "ptrt", "a TensorRT engine", "give the ONNX model that it was built from"),
    MAGIC(4, "ORTM", "an ONNX Runtime .ort model", "give the ONNX model that it was made from"),
    MAGIC(4, "TFL3", "a TensorFlow Lite model", "export it to ONNX first"),
    MAGIC(8, "{\"", "a safetensors file", "it holds weights without a graph: export the model"),
    MAGIC(0, "PK\x03\x04", "a zip archive",
          ".pt, .npz and packed models are such archives: extract or export first"),
    MAGIC(0, "\x89PNG", "a PNG image", NULL),
    MAGIC(0, "\xFF\xD8\xFF", "a JPEG image", NULL),
    MAGIC(0, "GIF8", "a GIF image", NULL),
    MAGIC(0, "%PDF", "a PDF document", NULL),
    MAGIC(0, "\x89HDF", "an HDF5 file", "export the model to ONNX first"),
    MAGIC(0, "\x1F\x8B", "a gzip file", "decompress it first"),
    MAGIC(0,
          "\xFD"
          "7zXZ",
          "an xz file", "decompress it first"),
    MAGIC(0, "\x28\xB5\x2F\xFD", "a Zstandard file", "decompress it first"),
    MAGIC(0, "\x80\x02", "a Python pickle", "export the model to ONNX first"),
    MAGIC(0,
          "\x7F"
          "ELF",
          "an ELF program or library", NULL),
    MAGIC(257, "ustar", "a tar archive", "extract it first"),
};

static const zc_file_kind HTML = {"an HTML or XML page", "the download may have failed", false};
static const zc_file_kind JSON = {"JSON text", NULL, false};
static const zc_file_kind TEXT = {"text", NULL, false};

/* A text of fewer bytes could be anything. */
#define TEXT_MIN 8

static const zc_file_kind *text_kind(const uint8_t *head, size_t len)
{
    size_t first = len;
    for (size_t i = 0; i < len; i++) {
        const bool space = head[i] == ' ' || (head[i] >= '\t' && head[i] <= '\r');
        if ((head[i] < 0x20 && !space) || head[i] == 0x7F) return NULL;
        if (!space && first == len) first = i;
    }
    if (len < TEXT_MIN || first == len) return NULL;
    if (head[first] == '{' || head[first] == '[') return &JSON;
    const bool tag = head[first] == '<' && first + 1 < len;
    return tag && (head[first + 1] == '!' || head[first + 1] == '?' || head[first + 1] == 'h')
               ? &HTML
               : &TEXT;
}

const zc_file_kind *zc_sniff(const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < ZC_COUNTOF(MAGICS); i++) {
        const magic *m = &MAGICS[i];
        if (zc_range_ok(m->off, m->len, len) && memcmp(head + m->off, m->bytes, m->len) == 0)
            return &m->kind;
    }
    return text_kind(head, len < ZC_SNIFF_BYTES ? len : ZC_SNIFF_BYTES);
}

zc_status zc_fail_kind(zc_diag *diag, const zc_file_kind *kind, const char *wanted)
{
    return zc_fail(diag, ZC_ERR_FORMAT, NULL, "this %s %s, not %s%s%s",
                   kind->certain ? "is" : "looks like", kind->name, wanted, kind->hint ? "; " : "",
                   kind->hint ? kind->hint : "");
}
