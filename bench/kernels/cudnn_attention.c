#include "cudnn.h"
zc_status kb_cudnn_attention(kb_run *r, zc_diag *diag)
{
    return zc_fail(diag, ZC_ERR_UNSUPPORTED, "cudnn", "not asked");
}
