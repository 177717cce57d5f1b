#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "support/computed.h"

#include "cpu/kernel.h"
#include "support/graph_run.h"
#include "support/onnx_text.h"

enum { VALUES_MAX = 128 };

zc_status import_lines(const char *header, const char *lines, zc_graph **g, zc_diag *diag)
{
    zc_buf text = {0}, model = {0};
    zc_buf_puts(&text, "opset 21\nopset com.microsoft 1\n");
    zc_buf_puts(&text, header);
    zc_buf_puts(&text, lines);
    assert_false(text.failed);
    onnx_text(text.data, &model);
    zc_status status = zc_import_bytes(model.data, model.len, NULL, g, diag);
    zc_buf_fini(&text);
    zc_buf_fini(&model);
    return status;
}

static void compare(size_t at, const zc_tensor *got, const char **want)
{
    for (int64_t i = 0; i < zc_tensor_numel(got); i++) {
        char *end;
        double x = strtod(*want, &end), y = zc_get(got, i);
        if (end == *want) fail_msg("case %zu: more elements than are wanted", at);
        if (x != y && !(fabs(x - y) <= 1e-5 * (1 + fabs(x))))
            fail_msg("case %zu: element %lld is %.9g, need %.9g", at, (long long)i, y, x);
        *want = end;
    }
    if (**want == ';') (*want)++;
}

static void compute(size_t at, const zc_graph *g, bool reference, const char *want)
{
    zc_tensor values[VALUES_MAX] = {{0}};
    char name[32];
    snprintf(name, sizeof name, "case %zu", at);
    assert_true(g->values.len <= VALUES_MAX);
    graph_run(name, g, reference, values);
    for (size_t i = 0; i < g->top.outputs.len; i++)
        compare(at, &values[g->top.outputs.data[i]], &want);
    if (*want) fail_msg("case %zu: fewer elements than are wanted", at);
    graph_run_free(g, 0, values);
}

void expect_computed(const computed *cases, size_t n)
{
    static const char *const outs[] = {"out y0 0 *\n", "out y1 0 *\n", "out y2 0 *\n",
                                       "out y3 0 *\n"};
    for (size_t i = 0; i < n; i++) {
        char header[64] = "";
        zc_graph *g = NULL;
        zc_diag *diag = zc_diag_create();
        size_t count = 0;
        for (const char *p = cases[i].want; p; p = strchr(p + 1, ';'))
            strcat(header, outs[count++]);
        if (import_lines(header, cases[i].lines, &g, diag) != ZC_OK)
            fail_msg("case %zu: %s", i, zc_diag_text(diag, 0));
        compute(i, g, true, cases[i].want);
        compute(i, g, false, cases[i].want);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

void expect_refused(const refused *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        zc_graph *g = NULL;
        zc_diag *diag = zc_diag_create();
        zc_status status = import_lines("", cases[i].lines, &g, diag);
        if (status == ZC_OK || !strstr(zc_diag_text(diag, 0), cases[i].why))
            fail_msg("%s: need \"%s\"", zc_diag_text(diag, 0), cases[i].why);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}
