// A user's own kernel, as their rule file binds it. Its __global__ function becomes a function of the entry below,
// which waits for the kernel in front of it and hands it operands, results and numbers.
//
// spec.h: TYPE_<operand> and TYPE_<result> (element types), the tuning parameters, Z_SOURCE (the user's file),
// Z_FUNCTION (its kernel), Z_ARGUMENTS (what it is called with), Z_BLOCK (threads of a block, the most).
#include "zc/device.cuh"
#include "abi/user.h"
#include "spec.h"

ZC_DEV void zc_call_user(const zc_user_params &p);

extern "C" __global__ __launch_bounds__(Z_BLOCK) void ZC_CAT(ZC_NAME, _0)(
    const __grid_constant__ zc_user_params p) {
    zc_begin();
    zc_call_user(p);
}

#undef __global__
#undef __launch_bounds__
#define __global__ __device__
#define __launch_bounds__(...)
#include Z_SOURCE

ZC_DEV void zc_call_user(const zc_user_params &p) { Z_FUNCTION(Z_ARGUMENTS); }
