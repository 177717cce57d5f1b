/* An operator of one's own: a model that has it is compiled and run.
 *
 * usage: custom_op MODEL
 *
 * The model (custom_op.onnx beside this file) is one node, SoftShrink of the domain org.example,
 * which brings each element nearer to 0 by the attribute `limit`. Link with libzc; a program that
 * runs such plans only needs libzc_rt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zc/zc.h"

/* The result is of the input's type and shape. Sizes that are not known yet are passed on too. */
static zc_status infer(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                       zc_custom_value *out, size_t nout)
{
    (void)user;
    if (nin != 1 || nout != 1 || in[0].elem != ZC_ELEM_F32)
        return zc_custom_fail(node, ZC_ERR_MODEL, "SoftShrink has one f32 input and one output");
    out[0].elem = in[0].elem;
    out[0].rank = in[0].rank;
    memcpy(out[0].dims, in[0].dims, sizeof in[0].dims);
    return ZC_OK;
}

typedef struct part {
    const float *x;
    float *y;
    float limit;
} part;

/* Elements begin to end; other parts are computed by other threads at the same time. */
static void shrink(void *arg, int64_t begin, int64_t end)
{
    const part *p = (const part *)arg;
    for (int64_t i = begin; i < end; i++) {
        const float x = p->x[i];
        p->y[i] = x > p->limit ? x - p->limit : x < -p->limit ? x + p->limit : 0;
    }
}

static zc_status run(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                     zc_custom_value *out, size_t nout)
{
    part p;
    (void)user, (void)nin, (void)nout;
    p.x = (const float *)in[0].data;
    p.y = (float *)out[0].result;
    if (!zc_custom_float(node, "limit", &p.limit)) p.limit = 0.5f;
    zc_custom_parallel(node, (int64_t)(in[0].bytes / sizeof(float)), 1000, shrink, &p);
    return ZC_OK;
}

static const zc_custom_op soft_shrink = {
    sizeof(zc_custom_op), "org.example", "SoftShrink", infer, run, NULL};
static const zc_custom_op *const operators[] = {&soft_shrink};

static zc_status load(const char *model, zc_plan **plan, zc_diag *diag)
{
    const char *path = "custom_op.plan";
    zc_status status = zc_compile_file(
        model, path, ZC_COMPILE_PARAMS(.custom_ops = operators, .custom_op_count = 1), diag);
    if (status == ZC_OK) status = zc_plan_load_file(path, plan, diag);
    (void)remove(path);
    return status;
}

static zc_status run_once(zc_session *session, zc_diag *diag)
{
    static const float x[8] = {-2, -1, -0.25f, 0, 0.25f, 1, 2, 4};
    zc_view in, out;
    memset(&in, 0, sizeof in);
    in.elem = ZC_ELEM_F32;
    in.rank = 2;
    in.dims[0] = 2;
    in.dims[1] = 4;
    in.data = x;
    in.bytes = sizeof x;
    zc_status status = zc_session_set_input(session, 0, &in, false, diag);
    if (status == ZC_OK) status = zc_session_run(session, diag);
    if (status == ZC_OK) status = zc_session_output(session, 0, &out, diag);
    for (size_t i = 0; status == ZC_OK && i < out.bytes / sizeof(float); i++)
        printf("%g -> %g\n", (double)x[i], (double)((const float *)out.data)[i]);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: custom_op MODEL\n");
        return EXIT_FAILURE;
    }
    zc_diag *diag = zc_diag_create();
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    zc_status status = load(argv[1], &plan, diag);
    /* The plan knows the operator's name; whoever runs it brings the code. */
    if (status == ZC_OK)
        status = zc_session_create(
            plan, ZC_SESSION_PARAMS(.custom_ops = operators, .custom_op_count = 1), &session, diag);
    if (status == ZC_OK) status = run_once(session, diag);
    for (size_t i = 0; i < zc_diag_count(diag); i++)
        fprintf(stderr, "custom_op: %s\n", zc_diag_text(diag, i));
    (void)zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    return status == ZC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
