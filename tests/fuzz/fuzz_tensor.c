/* A TensorProto, whose bytes may be in other files: what lies outside the root is never read. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "import/external.h"
#include "import/load.h"
#include "import/tensor_proto.h"

static const char secret[] = "SECRET-that-lies-outside-the-root";
static char base[64], root[80];

static void put(const char *dir, const char *name, const void *data, size_t n)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void remove_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    if (system(command) != 0) perror(base);
}

static void make_files(void)
{
    uint8_t bytes[64];
    char path[160];
    if (base[0]) return;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    strcpy(base, "/tmp/zc-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(base));
    snprintf(root, sizeof root, "%s/root", base);
    FUZZ_CHECK(mkdir(root, 0700) == 0);
    put(root, "w", bytes, sizeof bytes);
    put(base, "s", secret, sizeof secret);
    snprintf(path, sizeof path, "%s/l", root);
    FUZZ_CHECK(symlink("../s", path) == 0);
    snprintf(path, sizeof path, "%s/d", root);
    FUZZ_CHECK(symlink("..", path) == 0);
    snprintf(path, sizeof path, "%s/f", root);
    FUZZ_CHECK(mkfifo(path, 0600) == 0);
    atexit(remove_files);
}

static void check_bytes(const zc_tensor *t)
{
    size_t n;
    if (!t->data || !zc_tensor_bytes(t, &n) || n < 6) return;
    FUZZ_CHECK(!memmem(t->data, n, secret, 6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    make_files();
    zc_diag *diag = zc_diag_create();
    zc_external *ext = NULL;
    ProtobufCMessage *message = NULL;
    zc_tensor t = {0};
    if (!diag) return 0;
    /* Bytes that hold the secret themselves prove nothing. */
    if (memmem(data, size, secret, 6)) size = 0;
    zc_status status = zc_proto_unpack(data, size, ZC_WIRE_TENSOR, &message, diag);
    if (status == ZC_OK) status = zc_external_create(NULL, root, 1 << 20, &ext, diag);
    if (status == ZC_OK) status = zc_tensor_from_proto((Onnx__TensorProto *)message, ext, &t, diag);
    fuzz_check_words(diag, status);
    FUZZ_CHECK(status == ZC_OK || !t.data);
    check_bytes(&t);
    free(t.data);
    zc_external_destroy(&ext);
    if (message) protobuf_c_message_free_unpacked(message, NULL);
    zc_diag_destroy(&diag);
    return 0;
}
