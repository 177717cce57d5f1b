#ifndef ZC_CODEGEN_EMIT_H
#define ZC_CODEGEN_EMIT_H

#include "planfile/program.h"

/* The embedded templates, ended by a row without name (made by tools/embed.c). */
extern const zc_psource zc_templates[];

/* Writes DIR/<kernel>/spec.h with comments that name the ONNX nodes, and the templates it is
 * compiled with, so that `nvcc -I DIR/<kernel> -I DIR/templates DIR/templates/<template>` compiles
 * it. */
zc_status zc_codegen_emit(const zc_program *p, const char *dir, zc_diag *diag);

#endif
