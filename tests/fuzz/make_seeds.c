/* Writes seeds for the harnesses: make_seeds DIRECTORY. Made by the builders that the tests use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "import/import.h"
#include "io/npy.h"
#include "support/expect.h"
#include "support/small_model.h"
#include "support/tensor_pb.h"
#include "support/wide_model.h"

static const char *to;
static int failures;

static void put(const char *target, const char *name, const void *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", to, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", to, target, name);
    FILE *f = fopen(path, "wb");
    failures += !f || fwrite(data, 1, n, f) != n || fclose(f) != 0;
}

/* ---- models, their graphs as text, their plans ---- */

static const char *const models[] = {
    wide_text,
    "opset 12\nopset d 1\nin c 9 -\nin x 1 N,3,4\nout y 1 *\nout z 1 *\ninit w 1 4 1,1,1,1\n"
    "sparse u 4 1,2 1,1\ninfo p 1 N,3,4\ngraph T\nout t 1 *\nnode Relu x t\nend\n"
    "func d F a,b o k\nopset 12\nnode Constant - k value:t=1/1/5\n"
    "node LeakyRelu a q alpha:r=k/1\nnode Sum q,b,k o\nend\n"
    "node F x,w p domain=d k:f=1\nnode If c q then_branch:g=T else_branch:g=T\n"
    "node Softmax p y\nnode Add q,u z\n",
    "opset 17\nin x 1 1,2,8,8\nout y 1 *\ninit w 1 2,2,1,1 1,2,3,4\ninit s 1 2 1,2\n"
    "node Conv x,w a strides:is=2,2\n"
    "node BatchNormalization a,s,s,s,s b\nnode Relu b c\nnode GlobalAveragePool c d\n"
    "node Flatten d y\n",
    "opset 17\nin x 1 B,S,8\nout y 1 *\ninit g 1 8 1,1,1,1,1,1,1,1\ninit h 7 4 0,0,2,4\n"
    "node LayerNormalization x,g n\nnode Reshape n,h r\nnode Transpose r t perm:is=0,2,1,3\n"
    "node Shape t s\nnode Gather s,i k\ninit i 7 - 1\nnode Einsum n,n e equation:s=bij,bkj->bik\n"
    "node Softmax e y axis:i=-1\n",
    "opset 9\nin x 1 2,3\nout y 1 *\nout z 3 *\ninit sc 1 4 1,1,2,2\n"
    "node Unsqueeze x x4 axes:is=0,1\nnode Upsample x4,sc u\nnode Squeeze u y axes:is=0\n"
    "node QuantizeLinear x,qs,qz z\ninit qs 1 - 0.5\ninit qz 3 - 1\n",
};

static void put_model(int i, const zc_buf *model, zc_diag *diag)
{
    char name[32];
    zc_graph *g = NULL;
    zc_buf text = {0};
    void *plan;
    size_t len;
    snprintf(name, sizeof name, "seed_%d", i);
    put("model", name, model->data, model->len);
    zc_status status = zc_import_bytes(model->data, model->len, NULL, &g, diag);
    if (status == ZC_OK) {
        zc_graph_print(g, true, &text);
        put("ir", name, text.data, text.len);
    }
    if (status == ZC_OK)
        status = zc_compile_bytes(model->data, model->len, NULL, &plan, &len, diag);
    if (status == ZC_OK) {
        put("plan", name, plan, len);
        zc_free(plan);
    } else {
        fprintf(stderr, "seed %d: %s\n", i, zc_diag_text(diag, 0));
        failures++;
    }
    zc_buf_fini(&text);
    zc_graph_destroy(&g);
    zc_diag_clear(diag);
}

static void put_models(zc_diag *diag)
{
    zc_buf small = {0};
    small_model(&small);
    put_model(0, &small, diag);
    zc_buf_fini(&small);
    for (size_t i = 0; i < ZC_COUNTOF(models); i++) {
        zc_buf model = {0};
        onnx_text(models[i], &model);
        put_model((int)i + 1, &model, diag);
        zc_buf_fini(&model);
    }
    void *plan;
    size_t len;
    wide_plan(&plan, &len, diag);
    put("plan", "seed_wide", plan, len);
    zc_free(plan);
}

/* ---- tensors ---- */

static void put_tensor(const char *name, const char *location, const char *offset,
                       const char *length)
{
    const char *const keys[] = {"location", "offset", "length"};
    const char *const values[] = {location, offset, length};
    const int64_t n = 4;
    zc_buf b = {0};
    put_type(&b, ZC_F32, 1, &n);
    pb_int(&b, TENSOR_DATA_LOCATION, 1);
    for (size_t i = 0; i < ZC_COUNTOF(keys); i++) {
        zc_buf entry = {0};
        if (!values[i]) continue;
        pb_str(&entry, ENTRY_KEY, keys[i]);
        pb_str(&entry, ENTRY_VALUE, values[i]);
        pb_msg(&b, TENSOR_EXTERNAL_DATA, &entry);
    }
    put("tensor", name, b.data, b.len);
    zc_buf_fini(&b);
}

static void put_tensors(void)
{
    const float values[4] = {1, 2, 3, 4};
    const int64_t n = 4;
    zc_buf raw = {0};
    put_type(&raw, ZC_F32, 1, &n);
    pb_bytes(&raw, TENSOR_RAW_DATA, values, sizeof values);
    put("tensor", "seed_raw", raw.data, raw.len);
    zc_buf_fini(&raw);
    put_tensor("seed_whole", "w", NULL, NULL);
    put_tensor("seed_part", "w", "16", "16");
    put_tensor("seed_up", "../s", "0", "16");
    put_tensor("seed_link", "l", "0", "16");
    put_tensor("seed_through", "d/s", NULL, "16");
    put_tensor("seed_around", "d/root/w", NULL, "16");
    put_tensor("seed_fifo", "f", NULL, "16");
    put_tensor("seed_wrap", "w", "18446744073709551615", "16");
}

/* ---- arrays ---- */

static void put_header(const char *name, const char *dict, int major, size_t data)
{
    char bytes[512] = "\x93NUMPY";
    const size_t n = strlen(dict), at = major == 1 ? 10 : 12;
    bytes[6] = (char)major;
    bytes[8] = (char)n;
    memcpy(bytes + at, dict, n);
    put("npy", name, bytes, at + n + data);
}

static void put_arrays(void)
{
    put_header("seed_f4", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 1, 24);
    put_header("seed_big", "{'descr': '>i8', 'fortran_order': False, 'shape': (3,), }\n", 1, 24);
    put_header("seed_fortran", "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", 2,
               12);
    put_header("seed_scalar", "{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", 3, 1);
    put_header("seed_empty", "{'descr': '<c16', 'fortran_order': False, 'shape': (0, 7), }\n", 1,
               0);
    put_header("seed_short", "{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }\n", 1, 8);
}

int main(int argc, char **argv)
{
    zc_diag *diag = zc_diag_create();
    if (argc != 2 || !diag) return 1;
    to = argv[1];
    mkdir(to, 0777);
    put_models(diag);
    put_tensors();
    put_arrays();
    zc_diag_destroy(&diag);
    return failures != 0;
}
