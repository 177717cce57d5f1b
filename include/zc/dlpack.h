/* Tensors of other libraries, such as PyTorch, NumPy, CuPy and JAX, as inputs and results, by
 * DLPack 1.x (https://dmlc.github.io/dlpack). Library: libzc_rt.
 *
 * Include DLPack's own header for what is in a struct DLManagedTensorVersioned. In Python,
 * `tensor.__dlpack__(max_version=(1, 0))` makes one, and `from_dlpack` takes one. */
#ifndef ZC_DLPACK_H
#define ZC_DLPACK_H

#include "zc/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned;

/* Gives input i its value for the following runs, as zc_session_set_input. On success the tensor is
 * the session's, which calls its deleter when the input gets another value or the session ends, in
 * the thread of that call; otherwise it stays the caller's.
 *
 * The data is read where it is when it is row-major without gaps and aligned to its element type:
 * nobody may change it until the deleter is called. Other strides are copied, and the deleter is
 * called before this returns. Memory of a GPU is taken by sessions on that GPU alone, and its
 * contents must be valid in the order of the session's stream.
 *
 * ZC_ERR_UNSUPPORTED: another major version of DLPack, a device or an element type that zc does not
 * have, elements of less than a byte that are padded or have strides. */
ZC_API zc_status zc_session_set_input_dlpack(zc_session *session, size_t i,
                                             struct DLManagedTensorVersioned *tensor,
                                             zc_diag *diag);

/* Output i of the last run as a tensor that lives on its own: whoever gets it calls its deleter,
 * once, in any thread, before or after the end of the session. Afterwards the session has no result
 * i until the next run, which takes new memory for it; so nothing is copied, unless another output
 * is the same memory. With zc_session_params.allocator, the deleter gives the memory back to it.
 *
 * ZC_ERR_ARG for an output that is bound: it is in the caller's memory already. */
ZC_API zc_status zc_session_take_output_dlpack(zc_session *session, size_t i,
                                               struct DLManagedTensorVersioned **out,
                                               zc_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
