/* Parameters of user.cu. */
#ifndef ZC_ABI_USER_H
#define ZC_ABI_USER_H

#define ZC_USER_INPUTS    32
#define ZC_USER_OUTPUTS   8
#define ZC_USER_ARGS      16
#define ZC_USER_BLOCK_MAX 1024

struct zc_user_params {
    const void *in[ZC_USER_INPUTS];
    void *out[ZC_USER_OUTPUTS];
    long long arg[ZC_USER_ARGS];
};

#endif
