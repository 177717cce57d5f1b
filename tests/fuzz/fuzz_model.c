/* ONNX bytes through the scan, the importer, the passes and the plan builder. */
#include "fuzz.h"
#include "import/import.h"
#include "passes/passes.h"
#include "program/build.h"

static zc_status to_plan(const zc_graph *g, zc_diag *diag)
{
    zc_arena arena;
    zc_program program;
    zc_arena_init(&arena, 0);
    zc_status status = zc_program_build(g, &arena, &program, diag);
    zc_arena_fini(&arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const zc_import_params params = {.max_memory = 64 << 20};
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    if (!diag) return 0;
    zc_status status = zc_import_bytes(data, size, &params, &g, diag);
    FUZZ_CHECK((status == ZC_OK) == (g != NULL));
    if (status == ZC_OK) status = zc_run_passes(g, NULL, diag);
    if (status == ZC_OK) status = to_plan(g, diag);
    fuzz_check_words(diag, status);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
    return 0;
}
