/* Rule files: scanner, parser, checker; what passes is applied to a graph, which stays valid. A
 * golden test's file serves as a seed: only what comes before its first dashes is read. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rules/rules.h"

static const char model[] =
    "graph \"g\" {\n"
    "  input %x: f32[n,4] as \"x\"\n"
    "  const %w: f32[4,4] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]\n"
    "  const %b: f32[4] = [1, 2, 3, 4]\n"
    "  const %c: f32[] = [0.5]\n"
    "  %s: f32[n,4] = Sigmoid(%x) @ \"s\"\n"
    "  %m: f32[n,4] = Mul(%x, %s) @ \"m\"\n"
    "  %y: f32[n,4] = MatMul(%m, %w) @ \"y\"\n"
    "  %z: f32[n,4] = Add(%y, %b) @ \"z\"\n"
    "  %r: f32[n,4] = Relu(%z) @ \"r\"\n"
    "  %h: f32[n,4] = Mul(%r, %c) @ \"h\"\n"
    "  %t: f32[4,n] = Transpose(%h) {perm = [1, 0]} @ \"t\"\n"
    "  %a: f32[n,4] = Add(%h, %r) @ \"a\"\n"
    "  %d: f32[n,4] = Add(%x, %a) @ \"d\"\n"
    "  %e: f32[n,4] = Add(%d, %b) @ \"e\"\n"
    "  %f: f32[n,12] = Concat(%e, %x, %r) {axis = 1} @ \"f\"\n"
    "  output %t as \"t\"\n"
    "  output %f as \"f\"\n"
    "  output %r as \"r\"\n"
    "}\n";

static zc_status read_source(void *user, const char *name, uint8_t **data, size_t *len,
                             zc_diag *diag)
{
    *len = strlen(name);
    *data = (uint8_t *)strdup(name);
    return *data ? ZC_OK : zc_fail_nomem(diag, name, *len);
}

static void apply(const zc_rules *r, zc_diag *diag)
{
    zc_graph *g = NULL;
    if (zc_graph_parse(model, strlen(model), &g, NULL) != ZC_OK) return;
    zc_status status = zc_rules_apply(r, g, NULL, NULL, NULL, diag);
    FUZZ_CHECK(status == ZC_OK || status == ZC_ERR_LIMIT || status == ZC_ERR_NOMEM);
    zc_graph_compact(g);
    if (status != ZC_ERR_NOMEM) FUZZ_CHECK(zc_graph_validate(g, "the rules", NULL) == ZC_OK);
    zc_graph_destroy(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char dashes[] = "\n---\n";
    zc_diag *diag = zc_diag_create();
    zc_rules *r = NULL;
    for (size_t i = 0; i + strlen(dashes) <= size; i++)
        if (memcmp(data + i, dashes, strlen(dashes)) == 0) size = i + 1;
    if (!diag || zc_rules_create(&r, NULL) != ZC_OK) {
        zc_diag_destroy(&diag);
        return 0;
    }
    zc_rules_set_reader(r, read_source, NULL);
    zc_status status = zc_rules_add_text(r, "fuzz.zcr", (const char *)data, size, diag);
    fuzz_check_words(diag, status);
    for (size_t i = 0; i < zc_rules_message_count(r); i++) {
        zc_buf text = {0};
        zc_rules_message_print(r, i, &text);
        FUZZ_CHECK(text.failed || (text.len && text.data[text.len - 1] == '\n'));
        zc_buf_fini(&text);
    }
    zc_diag_clear(diag);
    if (status == ZC_OK) apply(r, diag);
    zc_rules_destroy(&r);
    zc_diag_destroy(&diag);
    return 0;
}
