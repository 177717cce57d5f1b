/* Models and plans from files and streams. */
#ifndef ZC_CLI_MODEL_H
#define ZC_CLI_MODEL_H

#include "driver/compile.h"

/* The file of that path; a pipe's bytes, and of "-" the standard input's. The caller closes *out,
 * also after a failure. */
zc_status cli_model_open(const char *path, zc_model_source *out, zc_diag *diag);
void cli_model_close(zc_model_source *model);

#endif
