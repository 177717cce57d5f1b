/* Graph to program: what runs, in which order, on which values. */
#ifndef ZC_PROGRAM_BUILD_H
#define ZC_PROGRAM_BUILD_H

#include "ir/graph.h"
#include "planfile/program.h"

/* The program borrows names, attributes and constants from the graph, and its arrays live in
 * `arena`: both must outlive it. The graph is compacted and resolved. model_sha256, version and
 * target are left for the caller. */
zc_status zc_program_build(const zc_graph *g, zc_arena *arena, zc_program *out, zc_diag *diag);

#endif
