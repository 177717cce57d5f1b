/* What old and compound forms of operators become, and what models mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/import.h"
#include "support/onnx_text.h"

/* One f32 matrix through some nodes. */
#define UNARY(opset, node) "opset " opset "\nin x 1 2,3\nout y 0\n" node "\n"
#define NODE(node)         UNARY("13", node)

typedef struct accepted {
    const char *name, *text;
    const char *has[8]; /* occur in the printed graph in this order; "!text": does not occur */
} accepted;

#define SCAN_BODY                                                                                  \
    "graph B\nin s 1 *\nin q 1 *\nout t 1 *\nout r 1 *\nnode Add s,q t\nnode Identity t r\nend\n"

static const accepted accepted_models[] = {
    {"anonymous nodes",
     NODE("node Relu x p\nnode Relu p y"),
     {"@ \"Relu_0\"", "@ \"Relu_1\" from \"Relu_1\""}},
    {"provenance", NODE("node Sum x,x,x y name=mine"), {"Pointwise", "from \"mine\""}},
    {"ai.onnx is the default domain",
     "opset ai.onnx 13\nin x 1 2\nout y 1 2\nnode Relu x y domain=ai.onnx\n",
     {"= Relu("}},
    {"an operator set that is imported twice in one version",
     "opset 13\nopset ai.onnx 13\nin x 1 2\nout y 1 2\nnode Relu x y\n",
     {"= Relu("}},
    {"initialiser that is an input",
     "opset 13\nin x 1 2\nin w 1 2\nout y 1 2\ninit w 1 2 1,2\nnode Add x,w y\n",
     {"input %x", "!input %w", "const %w: f32[2] = [1, 2]"}},
    {"sparse initialiser",
     "opset 13\nin x 1 2,3\nout y 1 2,3\nsparse w 2,3 1,5 7,8\nnode Add x,w y\n",
     {"const %w: f32[2,3] = [0, 7, 0, 0, 0, 8]"}},
    {"output that is an input", "opset 13\nin x 1 2\nout x 1 2\n", {"output %x as \"x\""}},
    {"zero-size tensors",
     "opset 13\nin x 1 0,3\nout y 1 0,3\nnode Relu x y\n",
     {"%y: f32[0,3] = Relu"}},

    /* dimensions */
    {"named dimensions",
     "opset 13\nin x 1 N,3\nout y 1 N,3\nnode Relu x y\n",
     {"%x: f32[N,3]", "%y: f32[N,3]"}},
    {"unnamed dimensions",
     "opset 13\nin x 1 ?,-1,3\nout y 1 *\nnode Relu x y\n",
     {"%x: f32[x_dim0,x_dim1,3]"}},
    {"names that mean unknown",
     "opset 13\nin x 1 None,None\nout y 1 *\nnode Relu x y\n",
     {"%x: f32[x_dim0,x_dim1]"}},
    {"expressions as names",
     "opset 13\nin x 1 a,b\nin z 1 a+b\nout y 1 *\nnode Concat x,x w axis:i=1\nnode Relu z y\n",
     {"%z: f32[a+b]"}},
    {"expressions over unbound names",
     "opset 13\nin z 1 a+b\nout y 1 *\nnode Relu z y\n",
     {"%z: f32[\"a+b\"]"}},
    {"shape arithmetic",
     "opset 13\nin x 1 N,4,6\nout y 1 *\ninit i 7 - 0\ninit m 7 1 -1\ninit z 7 1 0\nnode Shape x "
     "s\nnode Gather s,i n\n"
     "node Unsqueeze n,z u\nnode Concat u,m d axis:i=0\nnode Reshape x,d y\n",
     {"%y: f32[N,24]"}},
    {"the output's declared names are not adopted",
     "opset 13\nin x 1 N\nout y 1 M\nnode Relu x y\n",
     {"%y: f32[N]"}},
    {"a stale number in value_info",
     "opset 13\nin x 1 N\nout y 1 1\ninfo p 1 1\nnode Relu x p\nnode Relu p y\n",
     {"%y: f32[N]"}},

    /* old forms */
    {"broadcast and axis, 6",
     UNARY("6", "init w 1 2 1,1\nnode Add x,w y broadcast:i=1 axis:i=0"),
     {"= [1]", "Unsqueeze(%w", "%y: f32[2,3] = Add(%x"}},
    {"broadcast without axis, 6",
     UNARY("6", "init w 1 3 1,1,1\nnode Add x,w y broadcast:i=1"),
     {"Add(%x, %w)"}},
    {"consumed_inputs, 5", UNARY("5", "node Relu x y consumed_inputs:is=0"), {"Relu(%x) @"}},
    {"Cast by name, 5",
     UNARY("5", "node Cast x y to:s=INT64"),
     {"%y: i64[2,3] = Cast(%x) {to = i64}"}},
    {"Clip, 6",
     UNARY("6", "node Clip x y min:f=0 max:f=6"),
     {"f32[] = [0]", "f32[] = [6]", "Clip(%x, "}},
    {"Clip, 6, one bound", UNARY("6", "node Clip x y max:f=6"), {"Min(%x, "}},
    {"Clip, one bound", NODE("init lo 1 - 0\nnode Clip x,lo y"), {"Max(%x, %lo)"}},
    {"Clip, other bound", NODE("init hi 1 - 0\nnode Clip x,_,hi y"), {"Min(%x, %hi)"}},
    {"Clip, no bound", NODE("node Clip x y"), {"Identity(%x)"}},
    {"Clip, bound of shape [1]",
     NODE("init lo 1 1 0\nnode Clip x,lo y"),
     {"f32[] = Reshape(%lo", "%y: f32[2,3] = Max(%x"}},
    {"Selu, 5", UNARY("5", "node Selu x y"), {"alpha = 1.6732", "gamma = 1.0506"}},
    {"PRelu, 6",
     "opset 6\nin x 1 2,3,4,4\nout y 1 *\ninit s 1 3 1,1,1\nnode PRelu x,s y\n",
     {"f32[3,1,1] = Unsqueeze(%s", "PRelu(%x"}},
    {"Sum of one", NODE("node Sum x y"), {"Identity(%x)"}},
    {"Sum of two", NODE("node Sum x,x y"), {"Add(%x, %x)"}},
    {"Sum of three", NODE("node Sum x,x,x y"), {"Pointwise(%x, %x, %x) {expr = \"x0 + x1 + x2\"}"}},
    {"Mean", NODE("node Mean x,x y"), {"expr = \"(x0 + x1) / 2\""}},
    {"Max of three", NODE("node Max x,x,x y"), {"expr = \"max(max(x0, x1), x2)\""}},
    {"Min of two", NODE("node Min x,x y"), {"Min(%x, %x)"}},
    {"Mod", NODE("node Mod x,x y fmod:i=1"), {"FMod(%x, %x)"}},
    {"BitShift",
     "opset 11\nin x 13 2\nout y 13 2\nnode BitShift x,x y direction:s=RIGHT\n",
     {"ShiftRight(%x, %x)"}},
    {"Gelu", UNARY("20", "node Gelu x y approximate:s=tanh"), {"GeluTanh(%x)"}},
    {"ReduceSum, 11",
     UNARY("11", "node ReduceSum x y axes:is=1 keepdims:i=0"),
     {"i64[1] = [1]", "%y: f32[2] = ReduceSum(%x, "}},
    {"ReduceMean, 17",
     UNARY("17", "node ReduceMean x y axes:is=-1"),
     {"%y: f32[2,1] = ReduceMean(%x, "}},
    {"Concat, 3", UNARY("3", "node Concat x,x y"), {"%y: f32[2,6] = Concat(%x, %x) {axis = 1}"}},
    {"Pad, 1", UNARY("1", "node Pad x y paddings:is=0,1,0,1"), {"%y: f32[2,5] = Pad(%x, "}},
    {"Pad, 2",
     UNARY("2", "node Pad x y pads:is=0,1,0,1 value:f=3 mode:s=constant"),
     {"i64[4] = [0, 1, 0, 1]", "f32[] = [3]", "%y: f32[2,5] = Pad(%x, "}},
    {"Reshape, 1", UNARY("1", "node Reshape x y shape:is=3,-1"), {"%y: f32[3,2] = Reshape(%x, "}},
    {"Scatter",
     "opset 9\nin x 1 3\nin i 7 1\nin u 1 1\nout y 1 3\nnode Scatter x,i,u y axis:i=0\n",
     {"ScatterElements(%x, %i, %u)"}},
    {"Slice, 1",
     UNARY("1", "node Slice x y starts:is=1 ends:is=3 axes:is=1"),
     {"%y: f32[2,2] = Slice(%x, "}},
    {"Split, 2",
     "opset 2\nin x 1 6\nout a 1 *\nnode Split x a,b split:is=2,4\n",
     {"%a: f32[2], %b: f32[4] = Split(%x, "}},
    {"Split, 13, equal",
     "opset 13\nin x 1 6\nout a 1 *\nnode Split x a,b,c\n",
     {"%a: f32[2], %b: f32[2], %c: f32[2] = Split(%x) {num_outputs = 3}"}},
    {"Split, last output unwanted",
     "opset 13\nin x 1 6\nout a 1 *\ninit s 7 2 2,4\nnode Split x,s a,_\n",
     {"%a: f32[2]", "Split(%x, %s)"}},
    {"Squeeze, 11",
     "opset 11\nin x 1 1,3\nout y 1 *\nnode Squeeze x y axes:is=0\n",
     {"%y: f32[3] = Squeeze(%x, "}},
    {"Unsqueeze, 11",
     UNARY("11", "node Unsqueeze x y axes:is=0"),
     {"%y: f32[1,2,3] = Unsqueeze(%x, "}},
    {"Tile, 1",
     "opset 1\nin x 1 2,3\nout y 1 *\ninit t 7 - 4\ninit a 7 - 1\nnode Tile x,t,a y\n",
     {"= [1, 4]", "%y: f32[2,12] = Tile(%x, "}},
    {"TopK, 1",
     UNARY("1", "node TopK x y,i k:i=2 axis:i=1"),
     {"%y: f32[2,2], %i: i64[2,2] = TopK(%x, "}},
    {"BatchNormalization, 6",
     "opset 6\nin x 1 1,2,4\nout y 1 *\ninit s 1 2 1,1\nnode BatchNormalization x,s,s,s,s y "
     "is_test:i=1 spatial:i=1 momentum:f=0.5\n",
     {"%y: f32[1,2,4] = BatchNormalization(%x, %s, %s, %s, %s) {momentum = 0.5}"}},
    {"BatchNormalization, 9, training outputs unused",
     "opset 9\nin x 1 1,2\nout y 1 *\ninit s 1 2 1,1\nnode BatchNormalization x,s,s,s,s "
     "y,m,v,sm,sv\n",
     {"%y: f32[1,2] = BatchNormalization("}},
    {"If of a known condition",
     "opset 13\nin x 1 2\nout y 1 2\ninit c 9 - 0\ngraph T\nout t 1 *\nnode Concat x,x t "
     "axis:i=9\nend\n"
     "graph E\nout t 1 2\nnode Abs x t\nend\nnode If c y then_branch:g=T else_branch:g=E\n",
     {"Abs(%x)", "!If"}},
    {"BatchNormalization, 7, per element",
     "opset 7\nin x 1 1,2\nout y 1 *\ninit s 1 2 1,1\nnode BatchNormalization x,s,s,s,s y "
     "spatial:i=0 epsilon:f=0.5\n",
     {"f32[] = [0.5]", "Add(%s", "expr = \"(x0 - x3) / sqrt(x4) * x1 + x2\""}},
    {"DFT, 17",
     "opset 17\nin x 1 1,8,1\nout y 1 *\nnode DFT x y axis:i=1\n",
     {"i64[] = [1]", "DFT(%x, _, "}},
    {"Dropout, 6", UNARY("6", "node Dropout x y ratio:f=0.5 is_test:i=1"), {"Dropout(%x)"}},
    {"Dropout, 7, mask",
     UNARY("7", "node Dropout x y,m\nnode Add y,m z"),
     {"Identity(%x)", "Dropout(%x)", "f32[2,3] = Cast("}},
    {"Dropout, 10, mask",
     UNARY("10", "node Dropout x y,m"),
     {"Identity(%x)", "bool[2,3] = Dropout(%x)"}},
    {"Gemm, 6",
     UNARY("6", "init w 1 3,1 1,1,1\ninit b 1 1 1\nnode Gemm x,w,b y broadcast:i=1"),
     {"%y: f32[2,1] = Gemm(%x, %w, %b)"}},
    {"GlobalLpPool, 1",
     "opset 1\nin x 1 1,1,4\nout y 1 *\nnode GlobalLpPool x y p:f=3\n",
     {"GlobalLpPool(%x) {p = 3}"}},
    {"GridSample, 16",
     "opset 16\nin x 1 1,1,4,4\nin g 1 1,2,2,2\nout y 1 *\nnode GridSample x,g y mode:s=bicubic\n",
     {"GridSample(%x, %g) {mode = \"cubic\"}"}},
    {"GroupNormalization, 18",
     "opset 18\nin x 1 1,4,2\nout y 1 *\ninit s 1 2 1,1\nnode GroupNormalization x,s,s y "
     "num_groups:i=2\n",
     {"f32[2,1] = Unsqueeze(%s", "f32[2,2] = Expand(", "f32[4] = Reshape(",
      "%y: f32[1,4,2] = GroupNormalization(%x, "}},
    {"Softmax, 12, last axis", UNARY("12", "node Softmax x y"), {"Softmax(%x) {axis = 1}"}},
    {"Softmax, 12, one axis",
     "opset 12\nin x 1 2,3,1,1\nout y 1 *\nnode Softmax x y\n",
     {"Softmax(%x) {axis = 1}", "!Flatten"}},
    {"Softmax, 12, a matrix",
     "opset 12\nin x 1 2,3,4\nout y 1 *\nnode LogSoftmax x y\n",
     {"f32[2,12] = Flatten(%x) {axis = 1}", "LogSoftmax(", "{axis = -1}",
      "%y: f32[2,3,4] = Reshape("}},
    {"Softmax, 9, axis 0",
     UNARY("9", "node Hardmax x y axis:i=0"),
     {"f32[1,6] = Flatten(%x) {axis = 0}", "Hardmax("}},
    {"Resize, 10",
     "opset 10\nin x 1 1,1,4,4\nout y 1 *\ninit s 1 4 1,1,2,2\nnode Resize x,s y\n",
     {"%y: f32[1,1,8,8] = Resize(%x, _, %s) {", "\"asymmetric\"", "\"floor\""}},
    {"Resize, 10, smaller",
     "opset 10\nin x 1 1,1,4,4\nout y 1 *\ninit s 1 4 1,1,0.5,0.5\nnode Resize x,s y "
     "mode:s=nearest\n",
     {"\"ceil\""}},
    {"Resize, 11, sizes",
     "opset 11\nin x 1 1,1,4,4\nout y 1 *\ninit e 1 0\ninit s 7 4 1,1,8,8\nnode Resize x,e,e,s y\n",
     {"Resize(%x, _, _, %s)"}},
    {"Resize, 11, half a pixel further",
     "opset 11\nin x 1 1,1,4,4\nout y 1 *\ninit e 1 0\ninit s 1 4 1,1,2,2\nnode Resize x,e,s y "
     "mode:s=nearest "
     "coordinate_transformation_mode:s=tf_half_pixel_for_nn nearest_mode:s=floor\n",
     {"\"half_pixel\"", "\"round_prefer_ceil\""}},
    {"RoiAlign, 10",
     "opset 10\nin x 1 1,1,4,4\nin r 1 2,4\nin b 7 2\nout y 1 *\nnode RoiAlign x,r,b y\n",
     {"\"output_half_pixel\""}},
    {"Upsample, 1",
     "opset 6\nin x 1 1,1,4,4\nout y 1 *\nnode Upsample x y height_scale:f=2 width_scale:f=3 "
     "mode:s=bilinear\n",
     {"= [1, 1, 2, 3]", "%y: f32[1,1,8,12] = Resize(", "\"linear\""}},
    {"Upsample, 7",
     "opset 7\nin x 1 1,1,4,4\nout y 1 *\nnode Upsample x y scales:fs=1,1,2,2\n",
     {"= [1, 1, 2, 2]", "Resize("}},
    {"Upsample, 9",
     "opset 9\nin x 1 1,1,4,4\nout y 1 *\ninit s 1 4 1,1,2,2\nnode Upsample x,s y mode:s=linear\n",
     {"Resize(%x, _, %s)"}},
    {"LSTM, 1",
     "opset 6\nin x 1 2,1,3\nout h 1 *\ninit w 1 1,4,3 1,1,1,1,1,1,1,1,1,1,1,1\ninit r 1 1,4,1 "
     "1,1,1,1\n"
     "node LSTM x,w,r _,h hidden_size:i=1 output_sequence:i=0 activations:ss=Sigmoid,Tanh,Tanh\n",
     {"%h: f32[1,1,1] = LSTM(%x, %w, %r)", "activations = \"Sigmoid,Tanh,Tanh\""}},
    {"Constant forms",
     "opset 13\nin x 1 2\nout y 1 2\nnode Constant - a value:t=1/2/1,2\nnode Constant - b "
     "value_float:f=3\n"
     "node Constant - c value_floats:fs=4,5\nnode Sum x,a,b,c y\n",
     {"%a: f32[2] = [1, 2]", "%b: f32[] = [3]", "%c: f32[2] = [4, 5]"}},
    {"Constant forms of integers",
     "opset 13\nin x 7 2\nout y 7 2\nnode Constant - d value_int:i=6\nnode Constant - e "
     "value_ints:is=7\nnode Sum x,d,e y\n",
     {"%d: i64[] = [6]", "%e: i64[1] = [7]"}},
    {"optional values that are tensors",
     "opset 18\nin x 1 2\nout y 1 2\nout h 9 -\nout n 9 -\nnode OptionalGetElement x y\nnode "
     "OptionalHasElement x h\nnode OptionalHasElement - n\n",
     {"%h: bool[] = [1]", "%n: bool[] = [0]", "Identity(%x)"}},

    /* com.microsoft */
    {"BiasGelu",
     NODE("init b 1 3 1,1,1\nnode BiasGelu x,b y domain=com.microsoft"),
     {"Add(%x, %b)", "Gelu("}},
    {"FastGelu", NODE("node FastGelu x y domain=com.microsoft"), {"GeluTanh(%x)"}},
    {"QuickGelu", NODE("node QuickGelu x y domain=com.microsoft"), {"Swish(%x) {alpha = 1.702"}},
    {"BiasSplitGelu",
     "opset 13\nin x 1 2,4\nout y 1 *\ninit b 1 4 1,1,1,1\nnode BiasSplitGelu x,b y "
     "domain=com.microsoft\n",
     {"Split(", "Gelu(", "%y: f32[2,2] = Mul("}},
    {"FusedConv",
     "opset 13\nin x 1 1,2,5,5\nin z 1 1,4,3,3\nout y 1 *\nin w 1 4,2,3,3\nin b 1 4\n"
     "node FusedConv x,w,b,z y domain=com.microsoft strides:is=2,2 pads:is=1,1,1,1 "
     "activation:s=LeakyRelu activation_params:fs=0.5\n",
     {"Conv(%x, %w, %b) {pads = [1, 1, 1, 1], strides = [2, 2]}", "Add(", ", %z)",
      "%y: f32[1,4,3,3] = LeakyRelu(", "{alpha = 0.5}"}},
    {"FusedConv without more",
     "opset 13\nin x 1 1,2,5,5\nout y 1 *\nin w 1 4,2,3,3\nnode FusedConv x,w y "
     "domain=com.microsoft\n",
     {"%y: f32[1,4,3,3] = Conv(%x, %w)"}},
    {"FusedConv and Clip",
     "opset 13\nin x 1 1,2,5,5\nout y 1 *\nin w 1 4,2,3,3\nnode FusedConv x,w y "
     "domain=com.microsoft activation:s=Clip activation_params:fs=0,6\n",
     {"= [0]", "= [6]", "%y: f32[1,4,3,3] = Clip("}},
    {"FusedGemm",
     "opset 13\nin x 1 2,3\nout y 1 *\nin w 1 4,3\nnode FusedGemm x,w y domain=com.microsoft "
     "transB:i=1 activation:s=HardSigmoid activation_alpha:f=0.25 activation_beta:f=0.5\n",
     {"Gemm(%x, %w) {transB = 1}", "%y: f32[2,4] = HardSigmoid(", "alpha = 0.25", "beta = 0.5"}},
    {"FusedMatMulActivation",
     "opset 13\nin x 1 2,3\nout y 1 *\nin w 1 4,3\nnode FusedMatMulActivation x,w y "
     "domain=com.microsoft transB:i=1 activation:s=Relu\n",
     {"FusedMatMul(%x, %w) {transB = 1}", "%y: f32[2,4] = Relu("}},
    {"NhwcConv",
     "opset 13\nin x 1 1,5,6,2\nout y 1 *\nin w 1 4,3,3,2\nin b 1 4\nnode NhwcConv x,w,b y "
     "domain=com.microsoft strides:is=2,1\n",
     {"f32[1,2,5,6] = Transpose(%x)", "f32[4,2,3,3] = Transpose(%w)", "f32[1,4,2,4] = Conv(",
      "%y: f32[1,2,4,4] = Transpose("}},
    {"QGemm",
     "opset 13\nin x 2 2,3\nout y 2 2,4\nin b 3 4,3\nin z 2 1\nin bz 3 4\nin bs 1 4\nin s 1 1\n"
     "in c 6 4\nnode QGemm x,s,z,b,bs,bz,c,s,z y domain=com.microsoft transB:i=1\n",
     {"DequantizeLinear(%b, %bs, %bz) {axis = 0", "Gemm(", "Cast(%c)", "Add(",
      "%y: u8[2,4] = QuantizeLinear("}},
    {"QLinearWhere",
     "opset 13\nin c 9 3\nin x 2 3\nin s 1 1\nin z 2 1\nout y 2 3\n"
     "node QLinearWhere c,x,s,z,x,s,z,s,z y domain=com.microsoft\n",
     {"Where(%c", "%y: u8[3] = QuantizeLinear("}},
    {"QLinearSoftmax",
     "opset 13\nin x 2 2,3\nin s 1 1\nin z 2 1\nout y 2 2,3\n"
     "node QLinearSoftmax x,s,z,s,z y domain=com.microsoft opset:i=12 axis:i=1\n",
     {"Softmax(", "%y: u8[2,3] = QuantizeLinear("}},
    {"DynamicQuantizeLSTM",
     "opset 13\nin x 1 5,1,3\nout h 1 *\nin w 2 1,3,8\nin r 3 1,2,8\nin ws 1 1\nin wz 2 1\n"
     "in rs 1 1,8\nnode DynamicQuantizeLSTM x,w,r,_,_,_,_,_,ws,wz,rs _,h domain=com.microsoft "
     "hidden_size:i=2\n",
     {"%h: f32[1,1,2] = DynamicQuantizeLSTM(%x, %w, %r, _, _, _, _, _, %ws, %wz, %rs)"}},
    {"FusedMatMul",
     NODE("node FusedMatMul x,x y domain=com.microsoft transB:i=1"),
     {"%y: f32[2,2] = FusedMatMul(%x, %x)"}},

    {"QLinearAdd",
     "opset 13\nin x 2 2,3\nout y 2 2,3\ninit s 1 1 0.5\ninit z 2 1 7\nnode QLinearAdd "
     "x,s,z,x,s,z,s,z y domain=com.microsoft\n",
     {"Reshape(%s", "DequantizeLinear(%x", "DequantizeLinear(%x", "Add(",
      "%y: u8[2,3] = QuantizeLinear("}},
    {"QLinearAveragePool",
     "opset 13\nin x 2 1,1,4,4\nout y 2 1,1,2,2\ninit s 1 - 0.5\ninit z 2 - 7\n"
     "node QLinearAveragePool x,s,z,s,z y domain=com.microsoft kernel_shape:is=2,2 strides:is=2,2 "
     "channels_last:i=0\n",
     {"f32[1,1,2,2] = AveragePool(", "%y: u8[1,1,2,2] = QuantizeLinear("}},
    {"QLinearConcat",
     "opset 13\nin x 2 2,3\nout y 2 2,6\ninit s 1 - 0.5\ninit z 2 - 7\nnode QLinearConcat "
     "s,z,x,s,z,x,s,z y domain=com.microsoft axis:i=1\n",
     {"f32[2,6] = Concat(", "QuantizeLinear("}},
    {"DynamicQuantizeMatMul",
     "opset 13\nin x 1 2,3\nout y 1 2,2\ninit w 2 3,2 1,2,3,4,5,6\ninit s 1 - 0.5\nnode "
     "DynamicQuantizeMatMul x,w,s y domain=com.microsoft\n",
     {"DynamicQuantizeLinear(%x)", "i32[2,2] = MatMulInteger(", "%y: f32[2,2] = Mul("}},
    {"MatMulNBits", /* without zero points, 0 is -8 */
     "opset 13\nin x 1 2,6\nout y 1 2,1\ninit w 2 1,1,4 128,1,2,3\ninit s 1 1 0.5\n"
     "node MatMulNBits x,w,s y domain=com.microsoft K:i=6 N:i=1 bits:i=4 block_size:i=8\n",
     {"i4[1,8] = [-8, 0, -7, -8, -6, -8, -5, -8]", "f32[1,8] = DequantizeLinear(",
      "f32[1,6] = Slice(", "%y: f32[2,1] = Linear(%x, ", "{transB = 1}"}},
    {"MatMulNBits with zero points",
     "opset 13\nin x 1 2,16\nout y 1 2,1\ninit w 2 1,2,4 1,1,1,1,2,2,2,2\ninit s 1 2 0.5,1\ninit z "
     "2 1 33\n"
     "node MatMulNBits x,w,s,z y domain=com.microsoft K:i=16 N:i=1 bits:i=4 block_size:i=8\n",
     {"u4[1,2] = [1, 2]"}},
    {"FlexAttention",
     "opset 26\nopset ai.onnx.preview 1\nin q 1 1,2,3,4\nout y 1 1,2,3,4\nnode FlexAttention q,q,q "
     "y domain=ai.onnx.preview\n",
     {"%y: f32[1,2,3,4] = Attention(%q, %q, %q)"}},
    {"FlexAttention with a graph",
     "opset 26\nopset ai.onnx.preview 1\nin q 1 1,4,3,4\nin k 1 1,2,5,4\nout y 1 1,4,3,4\ngraph "
     "M\nin s 1 a,b,c,d\nout t 1 a,b,c,d\nnode Tanh s t\nend\n"
     "node FlexAttention q,k,k y domain=ai.onnx.preview score_mod:g=M\n",
     {"Expand(", "f32[1,4,3,5] = MatMul(", "Mul(", "Tanh(", "Softmax(",
      "%y: f32[1,4,3,4] = MatMul("}},

    /* functions */
    {"function",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a,b o,p k,q\nopset 13\nnode LeakyRelu a t "
     "alpha:r=k/1\n"
     "node LeakyRelu t u alpha:r=q/1\nnode Add u,b o\nnode Relu o p\ndefault q:f=0.5\nend\nnode F "
     "x,x _,y domain=d k:f=0.25 name=call\n",
     {"%call/t: f32[2] = LeakyRelu(%x) {alpha = 0.25} @ \"call/LeakyRelu_0\"",
      "LeakyRelu(%call/t) {alpha = 0.5}", "Add(", "%y: f32[2] = Relu("}},
    {"function with an input left out",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a,lo,hi o\nopset 13\nnode Clip a,lo,hi "
     "o\nend\nnode F x y domain=d\n",
     {"Identity(%x)"}},
    {"function with an attribute that is not given",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a o k\nopset 13\nnode LeakyRelu a o "
     "alpha:r=k/1\nend\nnode F x y domain=d\n",
     {"LeakyRelu(%x) @"}},
    {"function of a function, other opset",
     "opset 13\nopset d 1\nin x 1 2,3,4\nout y 1 *\nfunc d F a o\nopset d 1\nnode G a o domain=d "
     "name=g\nend\n"
     "func d G a o\nopset 12\nnode Softmax a o\nend\nnode F x y domain=d name=f\n",
     {"Flatten(%x)", "@ \"f/g/Softmax_0\""}},
    {"overloads",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a o - one\nopset 13\nnode Relu a "
     "o\nend\nfunc d F a o - two\nopset 13\n"
     "node Abs a o\nend\nnode F x y domain=d overload=two\n",
     {"Abs(%x)", "!Relu"}},
    {"constants of a function exist once",
     "opset 13\nopset d 1\nin x 1 2\nout y 1 2\nfunc d F a o\nopset 13\nnode Constant - c "
     "value:t=1/1/5\nnode Add a,c o\nend\n"
     "node F x p domain=d\nnode F p y domain=d\n",
     {"const %F_0/c", "!const %F_1/c"}},
    {"the standard's functions have kernels",
     "opset 20\nin x 1 2\nout y 1 2\nfunc ai.onnx Gelu X Y\nopset 20\nnode Relu X Y\nend\nnode "
     "Gelu x y\n",
     {"Gelu(%x)", "!Relu"}},

    /* regions */
    {"If with captures",
     "opset 13\nin c 9 -\nin x 1 2\nout y 1 2\ngraph T\nout t 1 2\nnode Relu x t\nend\ngraph "
     "E\nout t 1 2\nnode Abs x t\nend\n"
     "node If c y then_branch:g=T else_branch:g=E name=choice\n",
     {"%y: f32[2] = If(%c)", "Relu(%x) @ \"Relu_0\"", "Abs(%x)"}},
    {"inner names hide outer ones",
     "opset 13\nin c 9 -\nin x 1 2\nout y 1 2\ngraph T\nout x 1 2\ninit k 1 1 1\nnode Relu k "
     "x\nend\n"
     "graph E\nout t 1 2\nnode Abs x t\nend\nnode If c y then_branch:g=T else_branch:g=E\n",
     {"Relu(%k)", "Abs(%x)"}},
    {"Loop",
     "opset 13\nin n 7 -\nin x 1 2\nout y 1 2\nout s 1 *\ngraph B\nin i 7 -\nin c 9 -\nin v 1 "
     "2\nout c2 9 -\nout v2 1 2\nout v2 1 2\n"
     "node Identity c c2\nnode Add v,x v2\nend\nnode Loop n,_,x y,s body:g=B\n",
     {"%y: f32[2]", "= Loop(%n, _, %x)", "Add(%v, %x)"}},
    {"Loop that grows its value",
     "opset 13\nin n 7 -\nin x 1 2\nout y 1 *\ngraph B\nin i 7 -\nin c 9 -\nin v 1 *\nout c 9 "
     "-\nout v2 1 *\n"
     "node Concat v,x v2 axis:i=0\nend\nnode Loop n,_,x y body:g=B\n",
     {"%y: f32[?"}},
    {"Scan",
     "opset 13\nin x 1 5,2\nin z 1 2\nout y 1 2\nout r 1 5,2\n" SCAN_BODY
     "node Scan z,x y,r body:g=B num_scan_inputs:i=1\n",
     {"%y: f32[2], %r: f32[5,2] = Scan(%z, %x)"}},
    {"Scan, 8",
     "opset 8\nin x 1 7,5,2\nin z 1 7,2\nout y 1 7,2\nout r 1 7,5,2\n" SCAN_BODY
     "node Scan _,z,x y,r body:g=B num_scan_inputs:i=1\n",
     {"%y: f32[7,2], %r: f32[7,5,2] = Scan(%z, %x)", "f32[5,2] = Scan("}},
};

/* Whether `has` stands in *at or after, moving *at past it; "!..." must stand nowhere in text. */
static bool found(const char *text, const char **at, const char *has)
{
    if (*has == '!') return !strstr(text, has + 1);
    const char *p = strstr(*at, has);
    if (p) *at = p + strlen(has);
    return p != NULL;
}

static int check_accepted(const accepted *a, zc_diag *diag)
{
    zc_graph *g = NULL;
    zc_buf text = {0};
    int failures = 0;
    zc_buf model = {0};
    onnx_text(a->text, &model);
    zc_status status = zc_import_bytes(model.data, model.len, NULL, &g, diag);
    zc_buf_fini(&model);
    if (status == ZC_OK) status = zc_graph_validate(g, "import", diag);
    if (status == ZC_OK) zc_graph_print(g, false, &text);
    if (status != ZC_OK) {
        print_error("%s: %s, \"%s\"\n", a->name, zc_status_name(status), zc_diag_text(diag, 0));
        failures++;
    }
    const char *at = text.data;
    for (size_t i = 0; at && i < ZC_COUNTOF(a->has) && a->has[i] && !failures; i++) {
        if (found(text.data, &at, a->has[i])) continue;
        print_error("%s: no \"%s\" in\n%s\n", a->name, a->has[i], text.data);
        failures++;
    }
    zc_buf_fini(&text);
    zc_graph_destroy(&g);
    zc_diag_clear(diag);
    return failures;
}

static void test_accepted(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    int failures = 0;
    for (size_t i = 0; i < ZC_COUNTOF(accepted_models); i++)
        failures += check_accepted(&accepted_models[i], diag);
    zc_diag_destroy(&diag);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
