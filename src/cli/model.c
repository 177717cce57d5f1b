#include "cli/model.h"

#include <stdlib.h>

#include "base/file.h"
#include "cli/stream.h"

zc_status cli_model_open(const char *path, zc_model_source *out, zc_diag *diag)
{
    uint8_t *bytes;
    *out = (zc_model_source){.path = path};
    if (!zc_file_is_stream(path)) return ZC_OK;
    *out = (zc_model_source){.name = cli_stream_name(path)};
    ZC_TRY(zc_file_read_stream(path, CLI_STREAM_MAX, &bytes, &out->len, diag));
    out->bytes = bytes;
    return ZC_OK;
}

void cli_model_close(zc_model_source *model)
{
    free((void *)(uintptr_t)model->bytes);
    *model = (zc_model_source){.path = NULL};
}
