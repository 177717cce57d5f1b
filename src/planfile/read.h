/* Parts of reading a plan. */
#ifndef ZC_PLANFILE_READ_H
#define ZC_PLANFILE_READ_H

#include "planfile/program.h"

/* Every index is in range; checks what must hold between records: each value is defined exactly
 * once and before its uses, blocks nest without sharing and at most ZC_PLAN_DEPTH_MAX deep, control
 * flow has the blocks it needs. Marks values of inner blocks and of control flow as not planned. */
zc_status zc_program_verify(zc_program *p, zc_diag *diag);

/* Fills dim_texts of the program's inputs and outputs. */
zc_status zc_program_dim_texts(zc_program *p, zc_arena *arena, zc_diag *diag);

#endif
