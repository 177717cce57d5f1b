/* What the generators of the matrix product families share. */
#ifndef ZC_CODEGEN_GEN_MATMUL_H
#define ZC_CODEGEN_GEN_MATMUL_H

#include "codegen/gen.h"
#include "cuda/matmul_problem.h"

/* The step's form; declines when its ranks are not known. */
zc_status zc_gen_matmul_form(zc_gen *g, zc_matmul_form *form);
/* The header that zc/gemm.cuh describes. */
zc_status zc_gen_matmul_spec(zc_gen *g, const zc_matmul_form *form);

#endif
