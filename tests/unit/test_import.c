/* Importing whole models: what is refused and how, overrides, limits. What is accepted is
 * test_import_forms'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/import.h"
#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/onnx_text.h"

static zc_status import_text(const char *text, const zc_import_params *params, zc_graph **g,
                             zc_diag *diag)
{
    zc_buf model = {0};
    onnx_text(text, &model);
    zc_status status = zc_import_bytes(model.data, model.len, params, g, diag);
    zc_buf_fini(&model);
    return status;
}

/* ---- refused ---- */

typedef struct refused {
    const char *name, *text;
    zc_status status;
    const char *says;
} refused;

/* One f32 matrix through some nodes. */
#define UNARY(opset, node) "opset " opset "\nin x 1 2,3\nout y 0\n" node "\n"
#define NODE(node)         UNARY("13", node)
/* An operation that passes or the importer make is no operator. */
#define OWN(op)                                                                                    \
    {                                                                                              \
        op " is not ONNX's", NODE("node " op " x y"), ZC_ERR_UNSUPPORTED,                          \
            "not supported: operator '" op "' (in 1 nodes: " op "_0)"                              \
    }

static const refused refused_models[] = {
    /* the model as a whole */
    {"opset -1", UNARY("-1", "node Relu x y"), ZC_ERR_MODEL, "'ai.onnx' (got -1, need 1 to 27)"},
    {"opset 9999", UNARY("9999", "node Relu x y"), ZC_ERR_UNSUPPORTED, "(got 9999, need 1 to 27)"},
    {"opset twice", "opset 13\nopset ai.onnx 14\nin x 1 2\nout y 1 2\nnode Relu x y\n",
     ZC_ERR_MODEL, "imported twice (versions 13 and 14)"},
    {"no default opset", "opset com.foo 1\nin x 1 2\nout y 1 2\nnode Relu x y\n", ZC_ERR_MODEL,
     "Relu_0: the model imports no version of the default operator set (need 1 to 27)"},
    {"IR version 0", "ir 0\n" NODE("node Relu x y"), ZC_ERR_MODEL,
     "IR version (got 0, need 1 to 14)"},
    {"IR version 15", "ir 15\n" NODE("node Relu x y"), ZC_ERR_UNSUPPORTED,
     "IR version (got 15, need 1 to 14)"},
    {"no outputs", "opset 13\nin x 1 2\nnode Relu x y\n", ZC_ERR_MODEL, "the graph has no outputs"},

    /* names */
    {"self-loop", NODE("node Add x,y y name=a"), ZC_ERR_MODEL, "a: nodes form a cycle: a -> a"},
    {"cycle", NODE("node Add x,q p name=a\nnode Relu p q name=b\nnode Relu q y"), ZC_ERR_MODEL,
     "nodes form a cycle: a -> b -> a"},
    {"unsorted", NODE("node Relu p y name=late\nnode Relu x p name=early"), ZC_ERR_MODEL,
     "late: uses 'p' before node 'early' produces it (need nodes in topological order)"},
    {"unsorted capture",
     "opset 13\nin c 9 -\nin x 1 2\nout y 1 *\ngraph T\nout t 1 *\nnode Relu later t name=in\nend\n"
     "node If c y then_branch:g=T else_branch:g=T\nnode Relu x later name=maker\n",
     ZC_ERR_MODEL, "in: uses 'later' before node 'maker' of an enclosing graph produces it"},
    {"unknown name", NODE("node Relu z y"), ZC_ERR_MODEL,
     "Relu_0: uses 'z', which no input, initialiser or node produces"},
    {"two nodes, one name", NODE("node Relu x y name=a\nnode Abs x y name=b"), ZC_ERR_MODEL,
     "y: defined twice (by node 'a' and by node 'b')"},
    {"node and input", NODE("node Relu x x name=a\nnode Relu x y"), ZC_ERR_MODEL,
     "x: defined twice (by an input and by node 'a')"},
    {"node and initialiser", NODE("init w 1 1 1\nnode Relu x w name=a\nnode Relu w y"),
     ZC_ERR_MODEL, "w: defined twice (by an initialiser and by node 'a')"},
    {"initialiser twice", NODE("init w 1 1 1\ninit w 1 1 2\nnode Add x,w y"), ZC_ERR_MODEL,
     "w: defined twice (by an initialiser and by an initialiser)"},
    {"input twice", NODE("in x 1 2\nnode Relu x y"), ZC_ERR_MODEL,
     "x: defined twice (by an input and by an input)"},
    {"initialiser without a name", NODE("init _ 1 1 1\nnode Relu x y"), ZC_ERR_MODEL,
     "an initialiser has no name"},
    {"input without a name", "opset 13\nin _ 1 2\nin x 1 2\nout y 1 2\nnode Relu x y\n",
     ZC_ERR_MODEL, "an input has no name"},
    {"output not produced", NODE("node Relu x z"), ZC_ERR_MODEL,
     "y: the graph's output is never produced"},
    {"output twice", "opset 13\nin x 1 2\nout y 1 2\nout y 1 2\nnode Relu x y\n", ZC_ERR_MODEL,
     "y: the graph has this output twice"},

    /* types */
    {"input without a type", "opset 13\nin x 0\nout y 1 2\nnode Relu x y\n", ZC_ERR_MODEL,
     "x: the input has no element type"},
    {"element type 999", "opset 13\nin x 999 2\nout y 1 2\nnode Relu x y\n", ZC_ERR_MODEL,
     "x: unknown data type (got 999"},
    {"rank 17", "opset 13\nin x 1 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\nout y 1 *\nnode Relu x y\n",
     ZC_ERR_LIMIT, "x: too many dimensions (got 17, need at most 16)"},
    {"negative dimension", "opset 13\nin x 1 -5\nout y 1 *\nnode Relu x y\n", ZC_ERR_MODEL,
     "x: dimension 0 is negative (got -5)"},
    {"output of another type", "opset 13\nin x 1 2\nout y 7 2\nnode Relu x y\n", ZC_ERR_MODEL,
     "(got f32[2], the model says i64[2])"},
    {"output of another rank", "opset 13\nin x 1 2\nout y 1 2,1\nnode Relu x y\n", ZC_ERR_MODEL,
     "(got f32[2], the model says f32[2,1])"},
    {"output of another shape", "opset 13\nin x 1 2\nout y 1 3\nnode Relu x y\n", ZC_ERR_MODEL,
     "(got f32[2], the model says f32[3])"},
    {"value of another shape", NODE("info p 1 2,4\nnode Relu x p\nnode Relu p y"), ZC_ERR_MODEL,
     "p: type contradicts the model's (got f32[2,3], the model says f32[2,4])"},
    {"constant input of another shape",
     "opset 13\nin x 1 2\nin w 1 3\nout y 1 *\ninit w 1 2 1,2\nnode Add x,w y\n", ZC_ERR_MODEL,
     "w: type contradicts"},

    /* tensors; the rest is test_tensor_proto's */
    {"initialiser: dims that wrap",
     NODE("init w 1 4194305,4194305,211106198978564 1\nnode Add x,w y"), ZC_ERR_LIMIT, "w: "},
    {"initialiser: dimension -1", NODE("init w 1 -1 1\nnode Add x,w y"), ZC_ERR_MODEL, "w: "},
    {"initialiser: data type 999", NODE("init w 999 1 1\nnode Add x,w y"), ZC_ERR_MODEL,
     "w: unknown data type"},
    {"initialiser: too few values", NODE("init w 1 3 1,2\nnode Add x,w y"), ZC_ERR_MODEL,
     "w: float_data does not fill"},
    {"sparse: index outside", NODE("sparse w 2,3 0,6 1,2\nnode Add x,w y"), ZC_ERR_MODEL,
     "w: sparse index 1 is outside the tensor"},
    {"sparse: index negative", NODE("sparse w 2,3 -1,2 1,2\nnode Add x,w y"), ZC_ERR_MODEL,
     "w: sparse index 0 is outside the tensor"},
    {"sparse: unsorted", NODE("sparse w 2,3 4,2 1,2\nnode Add x,w y"), ZC_ERR_MODEL,
     "w: sparse index 1 is not in order"},
    {"sparse: larger than the budget", NODE("sparse w 1048576,1048576 0,1 1,2\nnode Add x,w y"),
     ZC_ERR_LIMIT, "w: the dense form is too large"},

    /* operators and their inputs */
    {"too few inputs", NODE("node Add x y"), ZC_ERR_MODEL,
     "Add_0: Add has a wrong number of inputs (got 1, need 2 to 2)"},
    {"too many inputs", NODE("node Relu x,x y"), ZC_ERR_MODEL,
     "Relu_0: Relu has a wrong number of inputs (got 2, need 1 to 1)"},
    {"input left out", NODE("node Add _,x y"), ZC_ERR_MODEL,
     "Add_0: Add needs input 0, which is left out"},
    {"no inputs", NODE("node Sum - y"), ZC_ERR_MODEL,
     "Sum_0: Sum has a wrong number of inputs (got 0"},
    {"gap in a list of inputs", NODE("node Sum x,_,x y"), ZC_ERR_MODEL,
     "Sum_0: Sum needs input 1, which is left out"},
    {"too many outputs", NODE("node Relu x y,z"), ZC_ERR_MODEL,
     "Relu_0: Relu has a wrong number of outputs"},

    /* attributes */
    {"unknown attribute", NODE("node Relu x y alpha:f=1"), ZC_ERR_MODEL,
     "Relu_0: Relu has no attribute 'alpha' at opset 13"},
    {"attribute twice", NODE("node LeakyRelu x y alpha:f=1 alpha:f=2"), ZC_ERR_MODEL,
     "LeakyRelu_0: attribute 'alpha' is given twice"},
    {"integer for a float", NODE("node LeakyRelu x y alpha:i=1"), ZC_ERR_MODEL,
     "attribute 'alpha' of LeakyRelu has the wrong type (got INT, need FLOAT)"},
    {"float for an integer", NODE("node Softmax x y axis:f=1"), ZC_ERR_MODEL,
     "attribute 'axis' of Softmax has the wrong type (got FLOAT, need INT)"},
    {"wrong type in an old form", UNARY("9", "node Softmax x y axis:s=1"), ZC_ERR_MODEL,
     "attribute 'axis' has the wrong type (got STRING, need INT)"},
    {"attribute type 999", NODE("node Softmax x y axis:n=999"), ZC_ERR_MODEL,
     "attribute 'axis' has no known type (got 999)"},
    {"attribute without a type", NODE("node Softmax x y axis:n=0"), ZC_ERR_MODEL,
     "has no known type (got 0)"},
    {"graph attribute without a graph", NODE("node If x y then_branch:n=5 else_branch:n=5"),
     ZC_ERR_MODEL, "attribute 'then_branch' has type GRAPH and no value"},
    {"reference outside of a function", NODE("node Softmax x y axis:r=a/2"), ZC_ERR_MODEL,
     "attribute 'axis' refers to 'a' outside of a function"},
    {"data type 99", NODE("node Cast x y to:i=99"), ZC_ERR_MODEL,
     "attribute 'to' is no known data type (got 99)"},
    {"data type 2^40", NODE("node Cast x y to:i=1099511627776"), ZC_ERR_MODEL,
     "is no known data type (got 1099511627776)"},
    {"Constant without a value", NODE("node Constant - c\nnode Add x,c y"), ZC_ERR_MODEL,
     "Constant needs one value (got 0 attributes)"},
    {"Constant with two values",
     NODE("node Constant - c value_int:i=1 value_float:f=1\nnode Add x,c y"), ZC_ERR_MODEL,
     "Constant needs one value (got 2 attributes)"},
    {"Constant with an unknown value", NODE("node Constant - c foo:i=1\nnode Add x,c y"),
     ZC_ERR_MODEL, "Constant has no attribute 'foo'"},

    /* attributes that a node must have */
    {"Cast without to", NODE("node Cast x y"), ZC_ERR_MODEL, "Cast_0: "},
    {"Concat without axis", NODE("node Concat x,x y"), ZC_ERR_MODEL,
     "Concat_0: attribute axis is missing"},
    {"Einsum without equation", NODE("node Einsum x y"), ZC_ERR_MODEL, "Einsum_0: "},
    {"MaxPool without kernel_shape", "opset 13\nin x 1 1,1,4,4\nout y 0\nnode MaxPool x y\n",
     ZC_ERR_MODEL, "MaxPool_0: "},
    {"DepthToSpace without blocksize", "opset 13\nin x 1 1,4,4,4\nout y 0\nnode DepthToSpace x y\n",
     ZC_ERR_MODEL, "DepthToSpace_0: "},
    {"LRN without size", "opset 13\nin x 1 1,4,4,4\nout y 0\nnode LRN x y\n", ZC_ERR_MODEL,
     "LRN_0: "},
    {"BitCast without to", "opset 26\nin x 1 2\nout y 0\nnode BitCast x y\n", ZC_ERR_MODEL,
     "BitCast_0: "},

    /* attributes out of range reach the shape functions at every opset */
    {"axis, newest", NODE("node Softmax x y axis:i=2"), ZC_ERR_MODEL,
     "Softmax_0: axis out of range (got 2, need [-2, 1])"},
    {"axis, old", UNARY("9", "node Softmax x y axis:i=3"), ZC_ERR_MODEL,
     "axis out of range (got 3, need [-2, 2])"},
    {"axis INT64_MIN, old", UNARY("9", "node Softmax x y axis:i=-9223372036854775808"),
     ZC_ERR_MODEL, "axis out of range"},
    {"axes, old", UNARY("9", "node Unsqueeze x y axes:is=9"), ZC_ERR_MODEL, "Unsqueeze_0: "},
    {"axes left out, old", UNARY("9", "node Unsqueeze x y"), ZC_ERR_MODEL,
     "Unsqueeze has a wrong number of inputs"},
    {"reduction axes, old", UNARY("11", "node ReduceMean x y axes:is=0,5"), ZC_ERR_MODEL,
     "ReduceMean_0: axis out of range"},
    {"reduction axes as attribute, new", UNARY("18", "node ReduceMean x y axes:is=0"), ZC_ERR_MODEL,
     "ReduceMean has no attribute 'axes' at opset 18"},
    {"attribute of zc's own", UNARY("23", "node Attention x,x,x y mask_value:f=-1"), ZC_ERR_MODEL,
     "Attention has no attribute 'mask_value' at opset 23"},
    {"reduction axes as input, old", UNARY("11", "init a 7 1 0\nnode ReduceMean x,a y"),
     ZC_ERR_MODEL, "ReduceMean has a wrong number of inputs (got 2, need 1 to 1)"},
    {"Slice step 0", NODE("init a 7 1 0\ninit b 7 1 1\nnode Slice x,a,b,a,a y"), ZC_ERR_MODEL,
     "Slice_0: "},
    {"Slice without starts, old", UNARY("9", "node Slice x y ends:is=1"), ZC_ERR_MODEL,
     "Slice needs attribute 'starts' at opset 9"},
    {"Pad without pads, old", UNARY("6", "node Pad x y"), ZC_ERR_MODEL,
     "Pad needs attribute 'pads' at opset 6"},
    {"Transpose perm with repeats", NODE("node Transpose x y perm:is=1,1"), ZC_ERR_MODEL,
     "Transpose_0: "},
    {"Reshape with two -1", NODE("init s 7 2 -1,-1\nnode Reshape x,s y"), ZC_ERR_MODEL,
     "Reshape_0: "},
    {"Reshape to another size", NODE("init s 7 2 4,4\nnode Reshape x,s y"), ZC_ERR_MODEL,
     "Reshape_0: "},
    {"Conv with 1-D weights",
     "opset 11\nin x 1 1,1,4,4\nout y 1 *\ninit w 1 1 1\nnode Conv x,w y\n", ZC_ERR_MODEL,
     "Conv_0: "},
    {"Conv with stride 0",
     "opset 11\nin x 1 1,1,4,4\nout y 1 *\ninit w 1 1,1,1,1 1\nnode Conv x,w y strides:is=0,0\n",
     ZC_ERR_MODEL, "Conv_0: "},
    {"Conv with group 0",
     "opset 11\nin x 1 1,1,4,4\nout y 1 *\ninit w 1 1,1,1,1 1\nnode Conv x,w y group:i=0\n",
     ZC_ERR_MODEL, "Conv_0: "},
    {"Conv with dilation INT64_MAX",
     "opset 11\nin x 1 1,1,4,4\nout y 1 *\ninit w 1 1,1,2,2 1,1,1,1\nnode Conv x,w y "
     "dilations:is=9223372036854775807,1\n",
     ZC_ERR_MODEL, "Conv_0: "},
    {"Gemm with a scalar", NODE("init w 1 - 1\nnode Gemm x,w y transB:i=823"), ZC_ERR_MODEL,
     "Gemm_0: "},
    {"Einsum with garbage", NODE("node Einsum x y equation:s=->->,i"), ZC_ERR_MODEL, "Einsum_0: "},
    {"RNN with a vector, opset 6",
     "opset 6\nin x 1 4\nout y 1 *\ninit w 1 1,1,4 1,1,1,1\ninit r 1 1,1,1 1\nnode RNN x,w,r y "
     "hidden_size:i=1 output_sequence:i=1\n",
     ZC_ERR_MODEL, "RNN_0: "},
    {"TopK without k, old", UNARY("9", "node TopK x y,i"), ZC_ERR_MODEL,
     "TopK needs attribute 'k' at opset 9"},
    {"Tile with a computed axis, old",
     "opset 5\nin x 1 2,3\nin t 7 -\nout y 1 *\nnode Tile x,t,t y\n", ZC_ERR_UNSUPPORTED,
     "Tile before opset 6 needs constant tiles and axis"},
    {"broadcast axis", UNARY("6", "init w 1 2 1,1\nnode Add x,w y broadcast:i=1 axis:i=2"),
     ZC_ERR_MODEL, "Add_0: axis out of range (got 2, need [0, 1])"},
    {"BitShift nowhere", "opset 11\nin x 13 2\nout y 13 2\nnode BitShift x,x y direction:s=UP\n",
     ZC_ERR_MODEL, "attribute 'direction' is unknown (got 'UP', need LEFT or RIGHT)"},
    {"Cast to no type, old", UNARY("5", "node Cast x y to:s=FLOOT"), ZC_ERR_MODEL,
     "attribute 'to' is unknown (got 'FLOOT'"},
    {"an activation of FusedGemm that is none",
     NODE("init w 1 3,3 1,2,3,4,5,6,7,8,9\nnode FusedGemm x,w y domain=com.microsoft "
          "activation:s=Add"),
     ZC_ERR_UNSUPPORTED, "unknown activation (got \"Add\")"},
    {"NhwcConv of a matrix",
     NODE("init w 1 1,1,1,3 1,2,3\nnode NhwcConv x,w y domain=com.microsoft"), ZC_ERR_MODEL,
     "input 0 has a wrong rank (got 2, need 4)"},
    {"LpPool by a fraction, old",
     "opset 1\nin x 1 1,1,4\nout y 1 *\nnode GlobalLpPool x y p:f=2.5\n", ZC_ERR_UNSUPPORTED,
     "attribute 'p' is not supported (got 2.5"},
    {"training output used",
     "opset 9\nin x 1 1,2\nout y 1 *\nout m 1 *\ninit s 1 2 1,1\nnode BatchNormalization x,s,s,s,s "
     "y,m,v,sm,sv\n",
     ZC_ERR_UNSUPPORTED, "m: uses 'm', an output that exists in training only"},

    /* unsupported */
    {"unknown operators",
     "opset 13\nopset com.foo 1\nin x 1 2\nout y 1 2\nnode Foo x a domain=com.foo name=f\nnode Bar "
     "a b\n"
     "node Foo b c domain=com.foo\nnode Relu c y\n",
     ZC_ERR_UNSUPPORTED,
     "not supported: operator 'Foo' of domain 'com.foo' (in 2 nodes: f, Foo_2)"},
    OWN("AveragePoolNhwc"),
    OWN("ConvImage"),
    OWN("ConvNhwc"),
    OWN("FMod"),
    OWN("MaxPoolNhwc"),
    OWN("TransposeCast"),
    {"sequence input", "opset 13\nin x s1 2\nin z 1 2\nout y 1 2\nnode Relu z y\n",
     ZC_ERR_UNSUPPORTED, "x: a sequence of unknown length (fix its length: --dim x/length=N)"},
    {"string initialiser", NODE("init w 8 1 a\nnode Relu x y"), ZC_ERR_UNSUPPORTED,
     "w: not supported: tensors of strings (in 1 initialisers: w)"},
    {"string input", "opset 13\nin x 8 2\nin z 1 2\nout y 1 2\nnode Relu z y\n", ZC_ERR_UNSUPPORTED,
     "x: not supported: tensors of strings"},
    {"string Constant", NODE("node Constant - c value:t=8/1/a\nnode Relu x y"), ZC_ERR_UNSUPPORTED,
     "Constant_0: not supported: tensors of strings"},
    {"string Constant by attribute", NODE("node Constant - c value_string:s=a\nnode Relu x y"),
     ZC_ERR_UNSUPPORTED, "Constant_0: strings are not supported"},
    {"Cast to string", NODE("node Cast x c to:i=8\nnode Relu x y"), ZC_ERR_UNSUPPORTED,
     "Cast_0: attribute 'to': strings are not supported"},

    /* functions */
    {"function that calls itself",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b\nopset d 1\nnode F a b "
     "domain=d\nend\nnode F x y domain=d\n",
     ZC_ERR_MODEL, "a function calls itself: F <- F"},
    {"functions that call each other",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b\nopset d 1\nnode G a b domain=d\nend\n"
     "func d G a b\nopset d 1\nnode H a b domain=d\nend\nfunc d H a b\nopset d 1\nnode F a b "
     "domain=d\nend\nnode F x y domain=d\n",
     ZC_ERR_MODEL, "a function calls itself: F <- H <- G <- F"},
    {"function twice",
     "opset 13\nin x 1 2\nout y 1 2\nfunc d F a b\nopset 13\nend\nfunc d F a b\nopset "
     "13\nend\nnode Relu x y\n",
     ZC_ERR_MODEL, "F: the function is defined twice"},
    {"function with too many inputs",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b\nopset 13\nnode Relu a b\nend\nnode F "
     "x,x y domain=d\n",
     ZC_ERR_MODEL,
     "the call does not fit function 'F' (got 2 inputs and 1 outputs, need at most 1 and 1)"},
    {"function without that attribute",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b k\nopset 13\nnode Relu a b\nend\nnode "
     "F x y domain=d q:i=1\n",
     ZC_ERR_MODEL, "function 'F' has no attribute 'q'"},
    {"function attribute of another type",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b k\nopset 13\nnode Softmax a b "
     "axis:r=k/2\nend\nnode F x y domain=d k:f=1\n",
     ZC_ERR_MODEL, "attribute 'axis' refers to 'k' (got type FLOAT, need INT)"},
    {"function without its output",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b\nopset 13\nnode Relu a c\nend\nnode F "
     "x y domain=d\n",
     ZC_ERR_MODEL, "output 'b' of function 'F' is never produced"},
    {"function at opset 99",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b\nopset 99\nnode Relu a b\nend\nnode F "
     "x y domain=d\n",
     ZC_ERR_UNSUPPORTED, "F: version of operator set 'ai.onnx' (got 99"},
    {"names of the caller are not seen",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a b\nopset 13\nnode Relu x b\nend\nnode F "
     "x y domain=d name=call\n",
     ZC_ERR_MODEL, "call/Relu_0: uses 'x', which no input, initialiser or node produces"},

    /* regions */
    {"If without a branch",
     "opset 13\nin c 9 -\nout y 1 *\ngraph T\nout t 1 *\nnode Constant - t "
     "value_float:f=1\nend\nnode If c y then_branch:g=T\n",
     ZC_ERR_MODEL, "If needs attribute 'else_branch'"},
    {"If with an empty branch",
     "opset 13\nin c 9 -\nout y 1 *\ngraph T\nout t 1 *\nnode Constant - t "
     "value_float:f=1\nend\ngraph E\nend\n"
     "node If c y then_branch:g=T else_branch:g=E\n",
     ZC_ERR_MODEL, "outputs of the else-branch (got 0, need 1)"},
    {"If with inputs of a branch",
     "opset 13\nin c 9 -\nout y 1 *\ngraph T\nin q 1 2\nout t 1 *\nnode Relu q t\nend\nnode If c y "
     "then_branch:g=T else_branch:g=T\n",
     ZC_ERR_MODEL, "the body has a wrong number of inputs (got 1, need 0)"},
    {"branch without its output",
     "opset 13\nin c 9 -\nout y 1 *\ngraph T\nout t 1 *\nend\nnode If c y then_branch:g=T "
     "else_branch:g=T\n",
     ZC_ERR_MODEL, "output 't' of the body is never produced"},
    {"Loop with too few inputs of the body",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nin i 7 -\nin c 9 -\nout c 9 -\nout x 1 *\nend\nnode "
     "Loop _,_,x y body:g=B\n",
     ZC_ERR_MODEL, "the body has a wrong number of inputs (got 2, need 3)"},
    {"Loop with a body of another type",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nin i 7 -\nin c 9 -\nin q 7 2\nout c 9 -\nout q 7 "
     "2\nend\nnode Loop _,_,x y body:g=B\n",
     ZC_ERR_MODEL, "input 'q' of the body has the wrong type (got f32, need i64)"},
    {"Scan of more inputs than there are",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nin q 1 -\nout r 1 -\nnode Relu q r\nend\nnode Scan x "
     "y body:g=B num_scan_inputs:i=9\n",
     ZC_ERR_MODEL, "num_scan_inputs out of range (got 9, need [1, 1])"},
    {"Scan along no axis",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nin q 1 -\nout r 1 -\nnode Relu q r\nend\n"
     "node Scan x y body:g=B num_scan_inputs:i=1 scan_input_axes:is=1\n",
     ZC_ERR_MODEL, "axis of a scanned input out of range (got 1, need [-1, 0])"},
    {"Scan with a short list",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nin q 1 -\nin p 1 -\nout r 1 -\nnode Add q,p r\nend\n"
     "node Scan x,x y body:g=B num_scan_inputs:i=2 scan_input_axes:is=0\n",
     ZC_ERR_MODEL, "attribute 'scan_input_axes' has a wrong length (got 1, need 2)"},
    {"Scan in no direction",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nin q 1 -\nout r 1 -\nnode Relu q r\nend\n"
     "node Scan x y body:g=B num_scan_inputs:i=1 scan_input_directions:is=2\n",
     ZC_ERR_MODEL, "no direction (got 2, need 0 or 1)"},
    {"Scan of nothing",
     "opset 13\nin x 1 2\nout y 1 *\ngraph B\nend\nnode Scan - y body:g=B num_scan_inputs:i=0\n",
     ZC_ERR_MODEL, "num_scan_inputs out of range (got 0, need [1, 0])"},
};

static void test_refused(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    const zc_import_params strict = {.strict = true};
    int failures = 0;
    for (size_t i = 0; i < ZC_COUNTOF(refused_models); i++) {
        const refused *r = &refused_models[i];
        zc_graph *g = NULL;
        zc_status status = import_text(r->text, &strict, &g, diag);
        const char *said = zc_diag_text(diag, 0);
        if (status != r->status || !strstr(said, r->says) || g) {
            print_error("%s: got %s, \"%s\"; need %s, \"%s\"\n", r->name, zc_status_name(status),
                        said, zc_status_name(r->status), r->says);
            failures++;
        }
        zc_graph_destroy(&g);
        zc_diag_clear(diag);
    }
    zc_diag_destroy(&diag);
    assert_int_equal(failures, 0);
}

/* What the model declares is not believed: one warning in the model's words, and how many others
 * there are. */
static void test_contradictions(void **state)
{
    static const char model[] = "opset 13\nin x 1 N,2,3\nin w 1 3\nout y 1 1,seqlen\n"
                                "out z 7 ?,2,3\ninit w 1 2,1 1,2\nnode Relu x y\nnode Mul x,w z\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    assert_int_equal(import_text(model, NULL, &g, diag), ZC_OK);
    assert_int_equal(zc_diag_count(diag), 2);
    assert_int_equal(zc_diag_status(diag, 0), ZC_OK);
    assert_string_equal(zc_diag_text(diag, 0),
                        "w: type contradicts the model's (got f32[2,1], the model says f32[3])");
    assert_string_equal(zc_diag_text(diag, 1),
                        "2 more declared types contradict the inferred ones");
    const zc_type *y = &zc_val(g, g->top.outputs.data[0])->type;
    assert_int_equal(y->rank, 3);
    zc_graph_destroy(&g);
    zc_diag_clear(diag);
    const zc_import_params strict = {.strict = true};
    expect_fail(diag,
                import_text("opset 13\nin x 1 N,2,3\nout y 1 1,seqlen,?\nnode Flatten x y\n",
                            &strict, &g, diag),
                ZC_ERR_MODEL, "(got f32[N,6], the model says f32[1,seqlen,?])");
    zc_diag_destroy(&diag);
}

/* Everything unsupported is reported, each thing once. */
static void test_all_unsupported(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_status status = import_text("opset 13\nin x 1 2\nin c 9 -\nout y 1 2\ninit w 8 1 a\n"
                                   "graph T\nout t 1 *\nnode InBranch x t\nend\n"
                                   "func d F a b\nopset 13\nnode InFunction a b\nend\n"
                                   "node Foo x a\nnode Foo x b\nnode Bar x e\nnode F x h domain=d\n"
                                   "node If c f then_branch:g=T else_branch:g=T\nnode Relu a y\n",
                                   NULL, &g, diag);
    assert_int_equal(status, ZC_ERR_UNSUPPORTED);
    const char *need[] = {"tensors of strings (in 1 initialisers: w)",
                          "operator 'Foo' (in 2 nodes: Foo_0, Foo_1)",
                          "operator 'Bar' (in 1 nodes: Bar_2)",
                          "operator 'InBranch' (in 2 nodes: If_4/InBranch_0, If_4/InBranch_0)",
                          "operator 'InFunction' (in 1 nodes: F/InFunction_0)"};
    assert_int_equal(zc_diag_count(diag), ZC_COUNTOF(need));
    for (size_t i = 0; i < ZC_COUNTOF(need); i++)
        if (!strstr(zc_diag_text(diag, i), need[i])) fail_msg("%s", zc_diag_text(diag, i));
    zc_diag_destroy(&diag);
}

/* What turns out to be unsupported while nodes are built does not hide what comes after it. */
static void test_unsupported_goes_on(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_status status = import_text(NODE("node Cast x a to:i=8 name=one\nnode Relu a b\n"
                                        "node Cast x c to:i=8 name=two\nnode Relu b y"),
                                   NULL, &g, diag);
    assert_int_equal(status, ZC_ERR_UNSUPPORTED);
    assert_int_equal(zc_diag_count(diag), 2);
    assert_non_null(strstr(zc_diag_text(diag, 0), "one: "));
    assert_non_null(strstr(zc_diag_text(diag, 1), "two: "));
    zc_diag_destroy(&diag);
}

/* ---- overrides ---- */

typedef struct overridden {
    const char *name;
    zc_dim_override dims[2];
    int ndims;
    zc_shape_override shapes[2];
    int nshapes;
    zc_status status;
    const char *says; /* what the type of y or the message contains */
} overridden;

static const overridden overridden_models[] = {
    {"a dimension", {{"N", 4}}, 1, {{0}}, 0, ZC_OK, "f32[4,x_dim1,3]"},
    {"an unnamed dimension", {{"x_dim1", 0}}, 1, {{0}}, 0, ZC_OK, "f32[N,0,3]"},
    {"a shape", {{0}}, 0, {{"x", 3, {7, 8, 3}}}, 1, ZC_OK, "f32[7,8,3]"},
    {"part of a shape", {{0}}, 0, {{"x", 3, {7, -1, 3}}}, 1, ZC_OK, "f32[7,x_dim1,3]"},
    {"a shape binds the other input's", {{0}}, 0, {{"z", 1, {9}}}, 1, ZC_OK, "f32[9,x_dim1,3]"},
    {"the same twice", {{"N", 9}}, 1, {{"z", 1, {9}}}, 1, ZC_OK, "f32[9,x_dim1,3]"},
    {"no such dimension",
     {{"M", 9}},
     1,
     {{0}},
     0,
     ZC_ERR_ARG,
     "M: no dimension of an input has this name (the model has: "},
    {"negative",
     {{"N", -9}},
     1,
     {{0}},
     0,
     ZC_ERR_ARG,
     "N: a dimension cannot be negative (got -9)"},
    {"two values",
     {{"N", 8}},
     1,
     {{"z", 1, {9}}},
     1,
     ZC_ERR_ARG,
     "N: one dimension with two values (got 8 by --dim and 9 by --shape)"},
    {"no such input", {{0}}, 0, {{"q", 1, {9}}}, 1, ZC_ERR_ARG, "q: the model has no such input"},
    {"wrong rank",
     {{0}},
     0,
     {{"x", 2, {9, 9}}},
     1,
     ZC_ERR_ARG,
     "x: wrong rank in the shape given (got 2, need 3)"},
    {"a fixed dimension",
     {{0}},
     0,
     {{"x", 3, {9, 9, 4}}},
     1,
     ZC_ERR_ARG,
     "x: dimension 2 is fixed by the model (got 4, need 3)"},
};

static void test_overrides(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(overridden_models); i++) {
        const overridden *o = &overridden_models[i];
        const zc_import_params params = {
            .dims = o->dims, .ndims = o->ndims, .shapes = o->shapes, .nshapes = o->nshapes};
        zc_graph *g = NULL;
        zc_buf text = {0};
        zc_status status = import_text(
            "opset 13\nin x 1 N,?,3\nin z 1 N\nout y 1 *\nnode Relu x y\nnode Relu z w\n", &params,
            &g, diag);
        if (status == ZC_OK)
            zc_type_print(&g->dims, &zc_val(g, g->top.outputs.data[0])->type, &text);
        else
            zc_buf_puts(&text, zc_diag_text(diag, 0));
        if (status != o->status || !strstr(text.data, o->says))
            fail_msg("%s: %s, %s", o->name, zc_status_name(status), text.data);
        zc_buf_fini(&text);
        zc_graph_destroy(&g);
        zc_diag_clear(diag);
    }
    zc_diag_destroy(&diag);
}

/* Numbers given for symbols reach the dimensions that are expressions of them. */
static void test_overrides_in_expressions(void **state)
{
    static const char model[] =
        "opset 13\nin x 1 N,M\nin z 1 N*2,N-3+M\nout y 1 *\nnode Relu z y\nnode Relu x w\n";
    const zc_dim_override one[] = {{"N", 4}};
    const zc_import_params params_one = {.dims = one, .ndims = 1};
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_buf text = {0};
    assert_int_equal(import_text(model, &params_one, &g, diag), ZC_OK);
    zc_type_print(&g->dims, &zc_val(g, g->top.outputs.data[0])->type, &text);
    assert_string_equal(text.data, "f32[8,M+1]");
    zc_buf_fini(&text);
    zc_graph_destroy(&g);
    const zc_dim_override both[] = {{"N", 1}, {"M", 1}};
    const zc_import_params params_both = {.dims = both, .ndims = 2};
    assert_int_equal(import_text(model, &params_both, &g, diag), ZC_ERR_ARG);
    assert_non_null(
        strstr(zc_diag_text(diag, 0), "z: dimension 1 (N-3+M) cannot be negative (got -1)"));
    zc_diag_destroy(&diag);
}

/* An input without a shape takes a whole one. */
static void test_shape_for_unknown_rank(void **state)
{
    (void)state;
    const zc_shape_override shape = {"x", 2, {4, 5}};
    const zc_import_params params = {.shapes = &shape, .nshapes = 1};
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    expect_ok(diag,
              import_text("opset 13\nin x 1 *\nout y 1 *\nnode Relu x y\n", &params, &g, diag));
    const zc_type *t = &zc_val(g, g->top.outputs.data[0])->type;
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dims[1].k, 5);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* ---- limits ---- */

/* n functions, each calling the next `calls` times. */
static void put_chain(zc_buf *text, int n, int calls)
{
    for (int i = 0; i < n; i++) {
        zc_buf_printf(text, "func d F%d a o\nopset d 1\nopset 13\n", i);
        for (int c = 0; c < calls; c++) {
            const char *to = c == calls - 1 ? "o" : "p";
            if (i == n - 1)
                zc_buf_printf(text, "node Relu %s %s\n", c ? "p" : "a", to);
            else
                zc_buf_printf(text, "node F%d %s %s domain=d\n", i + 1, c ? "p" : "a", to);
        }
        zc_buf_puts(text, "end\n");
    }
}

static zc_status import_chain(int n, int calls, const zc_import_params *params, zc_diag *diag)
{
    zc_buf text = {0};
    zc_graph *g = NULL;
    zc_buf_puts(&text, "opset 13\nopset d 1\nin x 1 2\nout y 1 2\n");
    put_chain(&text, n, calls);
    zc_buf_puts(&text, "node F0 x y domain=d\n");
    zc_status status = import_text(text.data, params, &g, diag);
    zc_buf_fini(&text);
    zc_graph_destroy(&g);
    return status;
}

static void test_depth_of_functions(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, import_chain(32, 1, NULL, diag));
    expect_fail(diag, import_chain(33, 1, NULL, diag), ZC_ERR_LIMIT,
                "functions and graphs are nested too deeply (need at most 32)");
    zc_diag_destroy(&diag);
}

/* 2^31 nodes from a small file end at the memory budget. */
static void test_doubling_functions(void **state)
{
    (void)state;
    const zc_import_params params = {.max_memory = 4 << 20};
    zc_diag *diag = zc_diag_create();
    zc_status status = import_chain(31, 2, &params, diag);
    assert_int_equal(status, ZC_ERR_NOMEM);
    assert_non_null(strstr(zc_diag_text(diag, 0), "memory"));
    zc_diag_destroy(&diag);
}

static void test_budget_of_constants(void **state)
{
    (void)state;
    const zc_import_params params = {.max_memory = 1 << 20};
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    expect_fail(diag,
                import_text(NODE("sparse w 1024,1024 0 1\nnode Add x,w y"), &params, &g, diag),
                ZC_ERR_LIMIT, "w: the dense form is too large");
    zc_diag_destroy(&diag);
}

static void test_long_chain(void **state)
{
    (void)state;
    zc_buf text = {0};
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_buf_puts(&text, "opset 13\nin v0 1 2\nout v20000 1 2\n");
    for (int i = 0; i < 20000; i++) zc_buf_printf(&text, "node Relu v%d v%d\n", i, i + 1);
    expect_ok(diag, import_text(text.data, NULL, &g, diag));
    assert_int_equal(g->top.nodes.len, 20000);
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

/* More inputs than one expression takes. */
static void test_many_inputs(void **state)
{
    (void)state;
    zc_buf text = {0};
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_buf_puts(&text, "opset 13\nin x 1 2\nout y 1 2\nnode Mean x");
    for (int i = 1; i < 1100; i++) zc_buf_puts(&text, ",x");
    zc_buf_puts(&text, " y\n");
    expect_ok(diag, import_text(text.data, NULL, &g, diag));
    /* 1100 in 35 groups, those in 2, those in 1. */
    assert_int_equal(g->top.nodes.len, 38);
    const zc_attrs_Pointwise *a = zc_node_at(g, g->top.nodes.data[37])->attrs;
    assert_string_equal(a->expr, "(x0 + x1) / 1100");
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

/* ---- external data ---- */

#define EXTERNAL_MODEL                                                                             \
    "\x08\x08"                                                          /* IR version 8 */         \
    "\x42\x02\x10\x0d"                                                  /* opset 13 */             \
    "\x3a\x35"                                                          /* graph of 53 bytes */    \
    "\x0a\x0c\x0a\x01w\x12\x01y\x22\x04Relu"                            /* Relu: w -> y */         \
    "\x2a\x20\x08\x02\x10\x01\x42\x01w\x6a\x15\x0a\x08location\x12\x09" /* w: f32[2] in ... */     \
    "gone.data\x70\x01"                                                                            \
    "\x62\x03\x0a\x01y" /* output y */

static void test_weightless(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    const size_t len = sizeof EXTERNAL_MODEL - 1;
    expect_fail(diag, zc_import_bytes(EXTERNAL_MODEL, len, NULL, &g, diag), ZC_ERR_UNSUPPORTED,
                "w: external data is not allowed here");
    const zc_import_params rooted = {.data_root = "."};
    assert_int_equal(zc_import_bytes(EXTERNAL_MODEL, len, &rooted, &g, diag), ZC_ERR_IO);
    zc_diag_clear(diag);
    const zc_import_params weightless = {.data_root = ".", .weightless = true};
    expect_ok(diag, zc_import_bytes(EXTERNAL_MODEL, len, &weightless, &g, diag));
    const zc_value *w = zc_val(g, zc_graph_find(g, "w"));
    assert_int_equal(w->kind, ZC_VALUE_CONST);
    assert_int_equal(w->type.dims[0].k, 2);
    assert_null(w->data->data);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* ---- allocation failures ---- */

static const char everything[] =
    "opset 12\nopset d 1\nin c 9 -\nin x 1 N,3,4\nout y 1 *\nout z 1 *\ninit w 1 4 1,1,1,1\nsparse "
    "u 4 1,2 1,1\ninfo p 1 N,3,4\n"
    "graph T\nout t 1 *\nnode Relu x t\nend\n"
    "func d F a,b o k\nopset 12\nnode Constant - k value:t=1/1/5\nnode LeakyRelu a q "
    "alpha:r=k/1\nnode Sum q,b,k o\nend\n"
    "node F x,w p domain=d k:f=1\nnode If c q then_branch:g=T else_branch:g=T\nnode Softmax p "
    "y\nnode Add q,u z\n";

static void test_failing_allocations(void **state)
{
    (void)state;
    zc_buf model = {0};
    onnx_text(everything, &model);
    long n = 1;
    for (;; n++) {
        zc_graph *g = NULL;
        zc_diag *diag = zc_diag_create();
        fail_alloc_at(n);
        zc_status status = zc_import_bytes(model.data, model.len, NULL, &g, diag);
        bool happened = fail_alloc_happened();
        fail_alloc_at(0);
        if (status == ZC_OK) zc_graph_destroy(&g);
        if (status != ZC_OK) assert_null(g);
        if (!happened) assert_int_equal(status, ZC_OK);
        if (happened && status != ZC_OK && status != ZC_ERR_NOMEM)
            fail_msg("allocation %ld: %s, %s", n, zc_status_name(status), zc_diag_text(diag, 0));
        zc_diag_destroy(&diag);
        if (!happened) break;
    }
    assert_true(n > 100);
    zc_buf_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_all_unsupported),
        cmocka_unit_test(test_unsupported_goes_on),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_overrides_in_expressions),
        cmocka_unit_test(test_shape_for_unknown_rank),
        cmocka_unit_test(test_depth_of_functions),
        cmocka_unit_test(test_doubling_functions),
        cmocka_unit_test(test_budget_of_constants),
        cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_many_inputs),
        cmocka_unit_test(test_weightless),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
