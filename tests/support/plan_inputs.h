/* Inputs for any small plan. */
#ifndef ZC_TESTS_PLAN_INPUTS_H
#define ZC_TESTS_PLAN_INPUTS_H

#include <stdlib.h>

#include "base/diag.h"
#include "op/tensor.h"
#include "zc/rt.h"

/* Gives every input of a plan a value of its declared type, with
 * `size` for unknown dimensions and elements that depend on `seed`, 1 or 2; integers are pairs with
 * the product 8. */
static inline zc_status plan_inputs(const zc_plan *plan, zc_session *session, int64_t size,
                                    unsigned seed, zc_diag *diag)
{
    enum { ROOM = 1 << 16 };
    zc_plan_info info;
    if (zc_plan_info_get(plan, &info) != ZC_OK) return ZC_ERR_ARG;
    uint8_t *room = calloc(ROOM, 1);
    if (!room) return ZC_ERR_NOMEM;
    zc_status status = ZC_OK;
    for (size_t i = 0; i < info.inputs && status == ZC_OK; i++) {
        zc_io_info io;
        if (zc_plan_input(plan, i, &io, diag) != ZC_OK) break;
        zc_tensor t = {.dtype = (zc_dtype)io.elem, .rank = io.rank, .data = room};
        zc_view v = {.elem = io.elem, .rank = io.rank, .data = room};
        for (int d = 0; d < io.rank; d++)
            t.dims[d] = v.dims[d] = io.dims[d] >= 0 ? io.dims[d] : size;
        if (!zc_tensor_bytes(&t, &v.bytes) || v.bytes > ROOM) {
            status = zc_fail(diag, ZC_ERR_LIMIT, io.name, "larger than this test allows");
            break;
        }
        int64_t n = zc_tensor_numel(&t);
        const bool integer = io.elem == 7;
        for (int64_t j = 0; j < n; j++)
            zc_store_f64(t.dtype, room, j,
                         integer ? (j % 2 ? 4.0 / seed : 2.0 * seed)
                                 : (double)((seed * 7 + (unsigned)j * 5) % 11) - 5);
        status = zc_session_set_input(session, i, &v, false, diag);
    }
    free(room);
    return status;
}

#endif
