/* Operands of the pointwise work within a kernel (zc/fused.cuh), over the axes of the operand or
 * result, collapsed where all run on together, outermost first. */
#ifndef ZC_ABI_EPILOGUE_H
#define ZC_ABI_EPILOGUE_H

enum { ZC_FUSED_INPUTS = 8, ZC_FUSED_RANK = 6, ZC_FUSED_LITERALS = 8 };

struct zc_fused_params {
    const void *in[ZC_FUSED_INPUTS];
    long long dims[ZC_FUSED_RANK];
    long long strides[ZC_FUSED_INPUTS][ZC_FUSED_RANK]; /* in elements; 0 along a broadcast axis */
    long long pitch[ZC_FUSED_INPUTS]; /* from one line of the last axis to the next */
    int rank, pad;
    float literals[ZC_FUSED_LITERALS]; /* numbers of the work that are not in its source */
};

#endif
