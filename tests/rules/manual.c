/* For manual.sh. usage: manual write MODEL | manual near A.npy B.npy */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/npy.h"
#include "support/onnx_text.h"

/* What the tutorial's rules match: x * sigmoid(1.702 x), a linear layer with Relu, a scaled and
 * shifted row, three products of one value, three biases, two scaled activations, and
 * concatenations. */
static const char model[] =
    "opset 18\nin x 1 n,4\nout gelu 1 *\nout linear 1 *\nout scaled 1 *\nout qkv 1 *\nout biased 1 "
    "*\nout faded 1 *\nout joined 1 *\n"
    "init k 1 - 1.702\ninit w 1 4,4 1,-2,3,0.5,0.25,1,-1,2,1,1,-0.5,0.125,2,-1,1,1\n"
    "init g 1 4 0.5,-2,3,1.25\ninit b 1 4 1,0.125,-3,0.5\n"
    "node Mul x,k m\nnode Sigmoid m s\nnode Mul x,s gelu\n"
    "node MatMul x,w p\nnode Add p,b a\nnode Relu a linear\n"
    "node Mul gelu,g t\nnode Add t,b scaled\n"
    "init wq 1 4,4 1,-2,3,0.5,0.25,1,-1,2,1,1,-0.5,0.125,2,-1,1,1\n"
    "init wk 1 4,4 0,1,-1,0.5,2,1,1,2,-1,1,0.5,1,2,-1,0,1\n"
    "init wv 1 4,4 1,1,0,0.5,0.5,1,-1,2,1,0,-0.5,1,2,1,1,1\n"
    "node MatMul scaled,wq q\nnode MatMul scaled,wk kk\nnode MatMul scaled,wv v\n"
    "node Sum q,kk,v qkv\n"
    "node Add scaled,b b1\nnode Add g,b1 b2\nnode Add b2,b biased\n"
    "init h 1 - 0.25\nnode Mul x,h f1\nnode Relu f1 f2\nnode Mul h,f2 f3\nnode Relu f3 faded\n"
    "node Relu biased j1\nnode Relu gelu j2\nnode Concat j1,j2 j3 axis:i=1\n"
    "node Relu scaled j4\nnode Concat j3,j4 joined axis:i=1\n";

static int write_model(const char *path)
{
    zc_buf bytes = {0};
    onnx_text(model, &bytes);
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(bytes.data, 1, bytes.len, f) == bytes.len;
    if (f && fclose(f) != 0) ok = false;
    zc_buf_fini(&bytes);
    return ok ? 0 : 1;
}

static bool near(const zc_tensor *a, const zc_tensor *b)
{
    int64_t n = zc_tensor_numel(a);
    if (a->dtype != b->dtype || n == 0 || n != zc_tensor_numel(b)) return false;
    for (int64_t i = 0; i < n; i++) {
        double x = zc_load_f64(a->dtype, a->data, i), y = zc_load_f64(b->dtype, b->data, i);
        if (fabs(x - y) > 1e-5 * (1 + fabs(x))) {
            printf("element %lld: %g and %g\n", (long long)i, x, y);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    zc_tensor a, b;
    if (argc == 3 && strcmp(argv[1], "write") == 0) return write_model(argv[2]);
    if (argc != 4 || zc_npy_read(argv[2], &a, NULL) != ZC_OK) return 2;
    if (zc_npy_read(argv[3], &b, NULL) != ZC_OK) return 2;
    bool ok = near(&a, &b);
    free(a.data);
    free(b.data);
    return ok ? 0 : 1;
}
