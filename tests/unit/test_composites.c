/* Sequences and optionals: what graphs they become, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/composite.h"
#include "support/onnx_text.h"

typedef struct model {
    const char *name, *text;
    zc_dim_override dims[2];
    const char *has[6]; /* occur in the printed graph in this order; "!text": nowhere */
    zc_status status;   /* of one that is refused */
    const char *says;
} model;

#define INDEX(name, value) "init " name " 7 - " value "\n"
#define SEQUENCE           "in a 1 2\nin b 1 3\nnode SequenceConstruct a,b s\n"
#define APPEND_BODY                                                                                \
    "graph B\nin i 7 -\nin c 9 -\nin s s1 *\nout c2 9 -\nout s2 s1 *\nout r 1 *\n"                 \
    "node Identity c c2\nnode SequenceInsert s,a s2\nnode Relu a r\nend\n"

static const model models[] = {
    {"graph inputs and outputs are tensors", "opset 13\nin x s1 N\nout y s1 *\nnode Identity x y\n",
     .dims = {{"x/length", 2}},
     .has = {"input %x/0: f32[\"x/0_dim0\"] as \"x/0\"", "input %x/1: f32[\"x/1_dim0\"]",
             "as \"y/0\"", "as \"y/1\""}},
    {"an empty sequence", "opset 13\nin x s1 N\nin z 1 2\nout y s1 *\nnode SequenceInsert x,z y\n",
     .dims = {{"x/length", 0}}, .has = {"input %z", "output %z as \"y/0\"", "!y/1"}},
    {"an optional tensor",
     "opset 18\nin x o1 N\nout y 1 *\nout h 9 -\nnode OptionalGetElement x y\nnode "
     "OptionalHasElement x h\n",
     .has = {"input %x: f32[N] as \"x\"", "output %x as \"y\"", "output %h as \"h\""}},
    {"an absent optional",
     "opset 18\nin x os1 N\nin z 1 2\nout h 9 -\nout y 1 2\nnode OptionalHasElement x h\n"
     "graph T\nout t 1 *\nnode OptionalGetElement x s\nnode SequenceAt s,k t\nend\n"
     "graph E\nout e 1 *\nnode Relu z e\nend\n" INDEX(
         "k", "0") "node If h y then_branch:g=T else_branch:g=E\n",
     .dims = {{"x/present", 0}}, .has = {"!input %x", "const %h: bool[] = [0]", "Relu(%z)"}},
    {"an optional sequence as output",
     "opset 15\nin a 1 2\nout y os1 *\nnode SequenceConstruct a,a s\nnode Optional s y\n",
     .has = {"output %a as \"y/0\"", "output %a as \"y/1\""}},
    {"insert, erase, at, length",
     "opset 13\n" SEQUENCE INDEX("z", "0") INDEX(
         "m", "-1") "out y 1 *\nout n 7 -\nnode SequenceInsert s,b,z t\nnode SequenceErase t u\n"
                    "node SequenceAt u,m v\nnode SequenceLength t n\nnode Relu v y\n",
     .has = {"const %n: i64[] = [3]", "Relu(%a)"}},
    {"concatenation", "opset 13\n" SEQUENCE "out y 1 *\nnode ConcatFromSequence s y axis:i=0\n",
     .has = {"f32[5] = Concat(%a, %b)"}},
    {"a stack",
     "opset 13\nin a 1 2\nout y 1 *\nnode SequenceConstruct a,a s\n"
     "node ConcatFromSequence s y axis:i=-1 new_axis:i=1\n",
     .has = {"Unsqueeze(%a", "f32[2,2] = Concat("}},
    {"a position known at run time, tensors of one size",
     "opset 13\nin a 1 2\nin i 7 -\nout y 1 *\nnode SequenceConstruct a,a s\n"
     "node SequenceAt s,i y\n",
     .has = {"f32[2,2] = Concat(", "%y: f32[2] = Gather("}},
    {"split into parts of a size",
     "opset 13\nin x 1 5\nout y s1 *\n" INDEX("k", "2") "node SplitToSequence x,k y\n",
     .has = {"f32[2]", "f32[2]", "f32[1] = Split(", "as \"y/2\""}},
    {"split without an axis",
     "opset 13\nin x 1 2,3\nout y s1 *\nnode SplitToSequence x y axis:i=1 keepdims:i=0\n",
     .has = {"Split(", "f32[2] = Squeeze(", "as \"y/2\""}},
    {"a map",
     "opset 17\nin x s1 N\nin z 1 1\nout y s1 *\ngraph B\nin a 1 *\nin b 1 *\nout r 1 *\n"
     "node Add a,b r\nend\nnode SequenceMap x,z y body:g=B name=m\n",
     .dims = {{"x/length", 2}},
     .has = {"Add(%x/0, %z) @ \"m/0/Add_0\"", "Add(%x/1, %z) @ \"m/1/Add_0\"", "as \"y/1\""}},
    {"a loop that is unrolled",
     "opset 13\nin a 1 2\nout y s1 *\nout q 1 *\n" INDEX("n", "2") APPEND_BODY
     "node SequenceEmpty - e\nnode Loop n,_,e y,q body:g=B\n",
     .has = {"Relu(%a)", "Relu(%a)", "f32[2,2] = Concat(", "as \"y/0\"", "as \"y/1\"", "!Loop("}},
    {"branches of the same form",
     "opset 13\nin c 9 -\nin a 1 2\nout y s1 *\ngraph T\nout t s1 *\nnode Relu a p\n"
     "node SequenceConstruct p,a t\nend\n"
     "graph E\nout e s1 *\nnode Abs a q\nnode SequenceConstruct a,q e\nend\n"
     "node If c y then_branch:g=T else_branch:g=E\n",
     .has = {"f32[2]", "f32[2] = If(%c)", "as \"y/0\"", "as \"y/1\""}},
    {"through a function",
     "opset 13\nopset d 1\n" SEQUENCE "out y 1 *\nfunc d F p q\nopset 13\n"
     "node SequenceLength p q\nend\nout n 7 -\nnode F s n domain=d\nnode Relu a y\n",
     .has = {"i64[] = [2]"}},

    /* refused */
    {"a sequence where a tensor is needed",
     "opset 13\n" SEQUENCE "out y 1 *\nnode Relu s y name=r\n", .status = ZC_ERR_MODEL,
     .says = "r: Relu: input 0 is a sequence (need a tensor)"},
    {"a tensor where a sequence is needed",
     "opset 13\nin a 1 2\nout y 7 *\nnode SequenceLength a y name=l\n", .status = ZC_ERR_MODEL,
     .says = "l: SequenceLength: input 0 is a tensor (need a sequence)"},
    {"tensors of two types",
     "opset 13\nin a 1 2\nin b 7 2\nout y s1 *\nnode SequenceConstruct a,b y name=c\n",
     .status = ZC_ERR_MODEL, .says = "c: a sequence has tensors of one type (got i64, need f32)"},
    {"a position out of range",
     "opset 13\n" SEQUENCE INDEX("k", "2") "out y 1 *\nnode SequenceAt s,k y name=n\n",
     .status = ZC_ERR_MODEL, .says = "n: SequenceAt: position out of range (got 2, need [-2, 1])"},
    {"a position known at run time",
     "opset 13\nin i 7 -\n" SEQUENCE "out y 1 *\nnode SequenceAt s,i y name=n\n",
     .status = ZC_ERR_UNSUPPORTED,
     .says = "n: SequenceAt: the position is known only when the model runs"},
    {"erased from nothing",
     "opset 13\nout y s1 *\nnode SequenceEmpty - e\nnode SequenceErase e y name=n\n",
     .status = ZC_ERR_MODEL, .says = "n: SequenceErase: the sequence is empty"},
    {"an axis of unknown size", "opset 13\nin x 1 N\nout y s1 *\nnode SplitToSequence x y name=n\n",
     .status = ZC_ERR_UNSUPPORTED,
     .says = "n: SplitToSequence: the size of the axis, and so the length of the sequence, is not "
             "known"},
    {"too many parts", "opset 13\nin x 1 4000000000\nout y s1 *\nnode SplitToSequence x y name=n\n",
     .status = ZC_ERR_LIMIT,
     .says = "n: the sequence is too long (got 4000000000, need at most 65536)"},
    {"an input of absurd length", "opset 13\nin x s1 2\nout y s1 *\nnode Identity x y\n",
     .dims = {{"x/length", INT64_MAX}}, .status = ZC_ERR_LIMIT,
     .says = "x: the sequence is too long"},
    {"present twice", "opset 13\nin x o1 2\nout y 1 *\nnode OptionalGetElement x y\n",
     .dims = {{"x/present", 2}}, .status = ZC_ERR_ARG, .says = "x: 'x/present' is 0 or 1 (got 2)"},
    {"an element that is not there",
     "opset 18\nin x o1 2\nout y 1 *\nnode OptionalGetElement x y name=n\n",
     .dims = {{"x/present", 0}}, .status = ZC_ERR_MODEL,
     .says = "n: OptionalGetElement: the optional is empty"},
    {"iterations known at run time",
     "opset 13\nin a 1 2\nin n 7 -\nout y s1 *\n" APPEND_BODY
     "node SequenceEmpty - e\nnode Loop n,_,e y body:g=B name=l\n",
     .status = ZC_ERR_UNSUPPORTED,
     .says =
         "l: Loop: a sequence or an optional is carried, so that the number of iterations must be "
         "known"},
    {"a loop without end",
     "opset 13\nin a 1 2\nout y s1 *\ngraph B\nin i 7 -\nin c 9 -\nin s s1 *\nout c 9 -\n"
     "out s s1 *\nend\nnode SequenceEmpty - e\nnode Loop _,_,e y body:g=B name=l\n",
     .status = ZC_ERR_LIMIT,
     .says = "l: Loop: too many iterations to be unrolled (need at most 65536)"},
    {"a loop that grows without end",
     "opset 13\nin a 1 2\nout y s1 *\n" APPEND_BODY
     "node SequenceEmpty - e\nnode Loop _,_,e y body:g=B name=l\n",
     .status = ZC_ERR_LIMIT, .says = "too many tensors in all sequences"},
    {"branches of two forms",
     "opset 13\nin c 9 -\nin a 1 2\nout y s1 *\ngraph T\nout t s1 *\n"
     "node SequenceConstruct a t\nend\ngraph E\nout e s1 *\nnode SequenceConstruct a,a e\nend\n"
     "node If c y then_branch:g=T else_branch:g=E name=i\n",
     .status = ZC_ERR_UNSUPPORTED,
     .says = "i: If: output 0 is a sequence or an optional, and how many tensors it has is known "
             "only when "
             "the model runs"},
    {"outputs of nothing", "opset 13\nout y s1 *\nnode SequenceEmpty - y\n",
     .status = ZC_ERR_UNSUPPORTED,
     .says = "y: every output is an empty sequence or an absent optional"},
    {"an output of a name that a tensor of a sequence has",
     "opset 13\nin a 1 2\nout y s1 *\nout y/0 1 *\nnode SequenceConstruct a y\nnode Relu a y/0\n",
     .status = ZC_ERR_MODEL, .says = "y/0: the graph has this output twice"},
};

static bool found(const char *text, const char **at, const char *has)
{
    if (*has == '!') return !strstr(text, has + 1);
    const char *p = strstr(*at, has);
    if (p) *at = p + strlen(has);
    return p != NULL;
}

static int check_graph(const model *m, const zc_graph *g)
{
    zc_buf text = {0};
    zc_graph_print(g, false, &text);
    const char *at = text.data, *lost = NULL;
    for (size_t i = 0; i < ZC_COUNTOF(m->has) && m->has[i] && !lost; i++)
        if (!found(text.data, &at, m->has[i])) lost = m->has[i];
    if (lost) print_error("%s: no \"%s\" in\n%s\n", m->name, lost, text.data);
    zc_buf_fini(&text);
    return lost != NULL;
}

static int check(const model *m, zc_diag *diag)
{
    zc_graph *g = NULL;
    zc_buf bytes = {0};
    int ndims = (m->dims[0].name != NULL) + (m->dims[1].name != NULL);
    const zc_import_params params = {.dims = m->dims, .ndims = ndims};
    onnx_text(m->text, &bytes);
    zc_status status = zc_import_bytes(bytes.data, bytes.len, &params, &g, diag);
    zc_buf_fini(&bytes);
    if (status == ZC_OK) status = zc_graph_validate(g, "import", diag);
    int failures = status != m->status || (m->says && !strstr(zc_diag_text(diag, 0), m->says));
    if (failures)
        print_error("%s: %s, \"%s\"; need %s, \"%s\"\n", m->name, zc_status_name(status),
                    zc_diag_text(diag, 0), zc_status_name(m->status), m->says ? m->says : "");
    else if (status == ZC_OK)
        failures = check_graph(m, g);
    zc_graph_destroy(&g);
    zc_diag_clear(diag);
    return failures;
}

static void test_models(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    int failures = 0;
    for (size_t i = 0; i < ZC_COUNTOF(models); i++) failures += check(&models[i], diag);
    zc_diag_destroy(&diag);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
