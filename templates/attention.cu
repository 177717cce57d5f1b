// Attention: y = softmax(scale * q k^T, capped, + biases) v. Entries: 0 a query by a block, or by several that share its
// keys, of which the last puts their results together; 1 tiles of queries; 2 and 3 what prepares its operands
// (zc/attention_prepare.cuh).
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh; Z_TILE (0 none, 1 on the ordinary cores, 2 on the tensor
// cores).
#include "zc/attention_prepare.cuh"
#include "zc/attention_row.cuh"
#if Z_TILE == 1
#include "zc/attention_simt.cuh"
#elif Z_TILE == 2
#include "zc/attention_mma.cuh"
#endif

ZC_KERNEL(0)(const __grid_constant__ zc_attention_params p) { zc_begin(); attend_row(p); }

ZC_KERNEL(1)(const __grid_constant__ zc_attention_params p) {
    zc_begin();
#if Z_TILE == 1
    attend_tile(p);
#elif Z_TILE == 2
    attend_mma(p);
#endif
}
