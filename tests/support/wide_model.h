/* A model with every kind of record that a plan can hold: symbolic dimensions and expressions of
 * them, attributes of every kind, results whose size only a run tells, If, Loop and Scan. */
#ifndef ZC_TESTS_WIDE_MODEL_H
#define ZC_TESTS_WIDE_MODEL_H

#include "support/onnx_text.h"
#include "support/plan_inputs.h"
#include "zc/zc.h"

static const char wide_text[] =
    "ir 8\nopset 17\n"
    "in x 1 n,4\nin c 9 -\nin k 7 -\nin p 1 1,1,h,6\nin r 7 2\n"
    "out y 1 *\nout z 1 *\nout q 1 *\nout lv 1 *\nout ls 1 *\nout fs 1 *\nout fo 1 *\nout o 1 *\n"
    "out nz 7 *\nout rh 1 *\nout e 11 *\nout xr 1 *\nout xe 1 *\nout yt 1 *\n"
    "init w 1 4,3 0.5,-1,2,1,0.25,-0.5,-2,1.5,1,0.125,3,-1\ninit b 1 3 0.5,-0.25,1\n"
    "init rw 1 1,2,4 0.5,-1,2,1,0.25,-0.5,-2,1.5\ninit rr 1 1,2,2 0.5,0.25,-0.5,0.125\n"
    "init ax 7 1 1\ninit one 1 1 3\ninit eight 1 8 1,2,3,4,5,6,7,8\n"
    "node MatMul x,w xw name=product\nnode Add xw,b xwb\nnode Relu xwb y\nnode Shape x s\n"
    "node ConstantOfShape s zz value:t=1/1/2.5\nnode Concat zz,x z axis:i=0\n"
    "node LeakyRelu y l alpha:f=0.25\nnode Cast l e to:i=11\n"
    "node Transpose y yt perm:is=1,0\n"
    "node MaxPool p o auto_pad:s=VALID kernel_shape:is=2,2 strides:is=2,3\n"
    "node NonZero y nz\n"
    "node Unsqueeze x,ax x3\n"
    "node RNN x3,rw,rr _,rh hidden_size:i=2 activations:ss=LeakyRelu activation_alpha:fs=0.5\n"
    "node Reshape eight,r xr\nnode Expand one,r xe0\nnode Sin xe0 xe\n"
    "graph T\nout t 1 *\nnode Relu l t\nend\n"
    "graph E\nout u 1 *\nnode Neg y u\nend\n"
    "node If c q then_branch:g=T else_branch:g=E name=branch\n"
    "graph B\nin i 7 -\nin g 9 -\nin v 1 n,3\nout g2 9 -\nout v2 1 *\nout sc 1 *\n"
    "node Identity g g2\nnode Add v,y v2\nnode Neg v sc\nend\n"
    "node Loop k,_,y lv,ls body:g=B name=repeat\n"
    "graph S\nin st 1 3\nin sl 1 3\nout st2 1 *\nout so 1 *\n"
    "node Add st,sl st2\nnode Neg st2 so\nend\n"
    "node Scan b,y fs,fo body:g=S num_scan_inputs:i=1 name=walk\n";

/* Compiled without optional passes, so that every step above stays. */
static inline void wide_plan(void **plan, size_t *len, zc_diag *diag)
{
    static const char *const skip[] = {"all"};
    zc_buf model = {0};
    onnx_text(wide_text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len,
                                     ZC_COMPILE_PARAMS(.skip_passes = skip, .skip_pass_count = 1),
                                     plan, len, diag));
    zc_buf_fini(&model);
}

#endif
