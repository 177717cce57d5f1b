/* An operator's inference for tests: its first result is like its first input. */
#ifndef ZC_TESTS_CUSTOM_SAME_H
#define ZC_TESTS_CUSTOM_SAME_H

#include <string.h>

#include "zc/custom.h"

static inline zc_status custom_infer_same(void *user, zc_custom_node *node,
                                          const zc_custom_value *in, size_t nin,
                                          zc_custom_value *out, size_t nout)
{
    (void)user, (void)node, (void)nin, (void)nout;
    out[0].elem = in[0].elem;
    out[0].rank = in[0].rank;
    memcpy(out[0].dims, in[0].dims, sizeof in[0].dims);
    return ZC_OK;
}

#endif
