/* com.microsoft's attention operators, whose nodes become Attention and others. Expected numbers
 * come from ONNX Runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "cpu/kernel.h"
#include "import/import.h"
#include "support/onnx_text.h"

enum { VALUES_MAX = 64, OPERANDS_MAX = 24 };

typedef struct computed {
    const char *lines;
    const char *want; /* elements of y0; y1; ... */
} computed;

static const computed cases[] = {
    {"init x0 1 1,3,3 1,-0.75,-0.625,0.125,-0.125,0.5,-0.625,0.875,-0.625\n"
     "init x1 1 3,12 0.625,0.375,-0.25,-0.875,0,0.5,-0.625,-0.5,0.125,0.5,0.75,"
     "-0.75,-0.625,0.625,0.25,0.5,1,0.875,0.625,0.5,-0.25,0.25,-0.625,0.5,0.5,0.5,"
     "-0.125,-0.25,-0.125,-0.875,0.75,0.125,-0.25,0.125,0.5,-0.25\n"
     "init x2 1 12 0.625,0.875,-0.25,-0.75,0.5,1,-0.75,0.375,0.625,0.875,-0.75,"
     "-0.875\n"
     "node Attention x0,x1,x2 y0,y1 domain=com.microsoft num_heads:i=2\n",
     "0.566227 0.790103 0.003725204 -1.675041 0.5783834 0.7890705 -0.2094931 "
     "-1.458036 0.7772701 0.9466355 -0.9989471 -0.7076045;-0.171875 1.390625 0.3125 "
     "0.515625 1.453125 2 -2.3125 -0.578125 -0.53125 0.3125 -0.28125 1.046875 "
     "1.09375 1.109375 0.546875 0.96875 0.484375 0.703125 0.15625 -1.84375 "
     "-0.328125 -1.15625 -2.078125 0.1875"},
    {"init x0 1 1,3,3 1,-0.75,-0.625,0.125,-0.125,0.5,-0.625,0.875,-0.625\n"
     "init x1 1 3,12 0.625,0.375,-0.25,-0.875,0,0.5,-0.625,-0.5,0.125,0.5,0.75,"
     "-0.75,-0.625,0.625,0.25,0.5,1,0.875,0.625,0.5,-0.25,0.25,-0.625,0.5,0.5,0.5,"
     "-0.125,-0.25,-0.125,-0.875,0.75,0.125,-0.25,0.125,0.5,-0.25\n"
     "init x2 1 12 0.625,0.875,-0.25,-0.75,0.5,1,-0.75,0.375,0.625,0.875,-0.75,"
     "-0.875\n"
     "init x3 6 1 2\n"
     "node Attention x0,x1,x2,x3 y0 domain=com.microsoft unidirectional:i=1 "
     "num_heads:i=2\n",
     "1.09375 1.109375 0.15625 -1.84375 0.8641613 1.050338 0.03812855 -1.676094 "
     "0.9189489 1.064426 -0.1454638 -1.415511"},
    {"init x0 1 1,3,3 1,-0.75,-0.625,0.125,-0.125,0.5,-0.625,0.875,-0.625\n"
     "init x1 1 3,12 0.625,0.375,-0.25,-0.875,0,0.5,-0.625,-0.5,0.125,0.5,0.75,"
     "-0.75,-0.625,0.625,0.25,0.5,1,0.875,0.625,0.5,-0.25,0.25,-0.625,0.5,0.5,0.5,"
     "-0.125,-0.25,-0.125,-0.875,0.75,0.125,-0.25,0.125,0.5,-0.25\n"
     "init x2 1 12 0.625,0.875,-0.25,-0.75,0.5,1,-0.75,0.375,0.625,0.875,-0.75,"
     "-0.875\n"
     "init x3 6 1,3 0,1,1\n"
     "node Attention x0,x1,x2,x3 y0 domain=com.microsoft mask_filter_value:f=-2 "
     "num_heads:i=2\n",
     "0.5054503 0.7533191 -0.3949843 -1.234026 0.5053136 0.7436571 -0.7090109 "
     "-0.931242 0.5693472 0.839718 -1.256101 -0.4546923"},
    {"init x0 1 1,3,3 1,-0.75,-0.625,0.125,-0.125,0.5,-0.625,0.875,-0.625\n"
     "init x1 1 3,12 0.625,0.375,-0.25,-0.875,0,0.5,-0.625,-0.5,0.125,0.5,0.75,"
     "-0.75,-0.625,0.625,0.25,0.5,1,0.875,0.625,0.5,-0.25,0.25,-0.625,0.5,0.5,0.5,"
     "-0.125,-0.25,-0.125,-0.875,0.75,0.125,-0.25,0.125,0.5,-0.25\n"
     "init x2 1 12 0.625,0.875,-0.25,-0.75,0.5,1,-0.75,0.375,0.625,0.875,-0.75,"
     "-0.875\n"
     "init x3 6 2 3,1\n"
     "node Attention x0,x1,x2,x3 y0 domain=com.microsoft num_heads:i=2\n",
     "0.4946469 0.7467806 -0.7766969 -0.8118109 0.491959 0.735357 -0.9442629 "
     "-0.6831442 0.5092423 0.8088109 -1.307086 -0.404548"},
    {"init x0 1 1,3,3 1,-0.75,-0.625,0.125,-0.125,0.5,-0.625,0.875,-0.625\n"
     "init x1 1 3,12 0.625,0.375,-0.25,-0.875,0,0.5,-0.625,-0.5,0.125,0.5,0.75,"
     "-0.75,-0.625,0.625,0.25,0.5,1,0.875,0.625,0.5,-0.25,0.25,-0.625,0.5,0.5,0.5,"
     "-0.125,-0.25,-0.125,-0.875,0.75,0.125,-0.25,0.125,0.5,-0.25\n"
     "init x2 1 12 0.625,0.875,-0.25,-0.75,0.5,1,-0.75,0.375,0.625,0.875,-0.75,"
     "-0.875\n"
     "init x4 1 2,1,2,1,2 0.5,-0.875,-0,-0.875,-0.375,-0.375,0.5,-0.125\n"
     "node Attention x0,x1,x2,_,x4 y0,y1 domain=com.microsoft unidirectional:i=1 "
     "scale:f=0.5 num_heads:i=2\n",
     "0.3808838 0.3889251 0.2916564 -1.166718 0.6236403 0.782922 0.1755859 "
     "-1.113961 0.6293514 0.7920254 -0.6072806 -0.6264825;0.5 -0.875 -0.171875 "
     "1.390625 0.3125 0.515625 1.453125 2 -0 -0.875 -2.3125 -0.578125 -0.53125 "
     "0.3125 -0.28125 1.046875 -0.375 -0.375 1.09375 1.109375 0.546875 0.96875 "
     "0.484375 0.703125 0.5 -0.125 0.15625 -1.84375 -0.328125 -1.15625 -2.078125 "
     "0.1875"},
    {"init x0 1 1,2,3 -0.875,1,0.75,0.875,-0.5,-0.25\n"
     "init x1 1 3,10 -0.5,-0.75,-0.875,0,-0.75,-0.625,0.75,-0,-0.625,0.375,-0.5,0,"
     "-0.375,0,0.25,0.125,-0.25,0.625,0.75,-0.625,-0.75,-0.75,1,0.875,-0.5,1,-0.625,"
     "0,-0,0.875\n"
     "init x2 1 10 -0.875,-0.375,0.25,-0.875,-0.5,-0.125,0.75,0.5,0.625,0.5\n"
     "node Attention x0,x1,x2 y0 domain=com.microsoft qkv_hidden_sizes:is=4,4,2 "
     "num_heads:i=2\n",
     "0.04203287 0.8631246 -0.05390283 0.5230777"},
    {"init x0 1 1,2,4 0.375,0.75,0.375,0.5,-0.375,-0.625,0.5,-0.625\n"
     "init x1 1 1,3,4 0.875,0.25,-0.375,0.875,-0.75,0,-0.875,0.875,0.125,0.625,"
     "-0.375,0.625\n"
     "init x2 1 1,3,2 0.375,0.25,0.875,-0.125,-0.125,0.375\n"
     "node MultiHeadAttention x0,x1,x2 y0 domain=com.microsoft num_heads:i=2\n",
     "0.2911668 0.1733276 0.4662392 0.1908976"},
    {"init x0 1 1,2,4 0.375,0.75,0.375,0.5,-0.375,-0.625,0.5,-0.625\n"
     "init x1 1 1,3,4 0.875,0.25,-0.375,0.875,-0.75,0,-0.875,0.875,0.125,0.625,"
     "-0.375,0.625\n"
     "init x2 1 1,3,2 0.375,0.25,0.875,-0.125,-0.125,0.375\n"
     "init x3 1 10 0.625,-0.375,0.375,-0.625,0.125,0.5,-0.875,0.5,-1,0.875\n"
     "node MultiHeadAttention x0,x1,x2,x3 y0 domain=com.microsoft num_heads:i=2\n",
     "-0.7157558 1.06769 -0.5814574 1.08498"},
    /* The same, with a query whose width is known when it runs. */
    {"init x0 1 1,2,4 0.375,0.75,0.375,0.5,-0.375,-0.625,0.5,-0.625\n"
     "init x1 1 1,3,4 0.875,0.25,-0.375,0.875,-0.75,0,-0.875,0.875,0.125,0.625,"
     "-0.375,0.625\n"
     "init x2 1 1,3,2 0.375,0.25,0.875,-0.125,-0.125,0.375\n"
     "init x3 1 10 0.625,-0.375,0.375,-0.625,0.125,0.5,-0.875,0.5,-1,0.875\n"
     "init c 9 4 1,1,1,1\n"
     "node Compress x0,c q axis:i=2\n"
     "node MultiHeadAttention q,x1,x2,x3 y0 domain=com.microsoft num_heads:i=2\n",
     "-0.7157558 1.06769 -0.5814574 1.08498"},
    {"init x0 1 1,2,4 0.375,0.75,0.375,0.5,-0.375,-0.625,0.5,-0.625\n"
     "init x1 1 1,3,4 0.875,0.25,-0.375,0.875,-0.75,0,-0.875,0.875,0.125,0.625,"
     "-0.375,0.625\n"
     "init x2 1 1,3,2 0.375,0.25,0.875,-0.125,-0.125,0.375\n"
     "init x4 6 1,3 1,1,0\n"
     "init x5 1 1,1,2,3 -0.125,-0.125,0.5,0,0.5,-0.875\n"
     "node MultiHeadAttention x0,x1,x2,_,x4,x5 y0 domain=com.microsoft "
     "num_heads:i=2\n",
     "0.5563718 0.07491143 0.744558 0.0324589"},
    {"init x0 1 1,2,4 0.375,0.75,0.375,0.5,-0.375,-0.625,0.5,-0.625\n"
     "init x1 1 1,2,3,2 0.125,0.125,0.875,-0.875,-0.125,0.25,0.125,-0.875,0.125,"
     "-0.5,-0.625,0.75\n"
     "init x2 1 1,2,3,2 -0.625,-0.125,0.5,0.375,0.125,0.625,-0.125,0.25,0.625,0.375,"
     "0.25,-0.25\n"
     "node MultiHeadAttention x0,x1,x2,_ y0 domain=com.microsoft num_heads:i=2\n",
     "-0.05190125 0.2830165 0.2647774 0.08732786 0.04228701 0.299771 0.2242177 "
     "0.2134798"},
    {"init x0 1 1,2,4 0.375,0.75,0.375,0.5,-0.375,-0.625,0.5,-0.625\n"
     "init x1 1 1,2,4 0.125,-0.25,0.5,-0.25,-0.125,0.5,0,-0.375\n"
     "init x2 1 1,2,4 0.625,-0.25,0.75,0.625,-0.125,0.375,-0.875,-0.25\n"
     "init x6 1 1,2,1,2 0.75,0.125,0.125,0.375\n"
     "init x7 1 1,2,1,2 0.375,0.125,-0.125,-0.625\n"
     "node MultiHeadAttention x0,x1,x2,_,_,_,x6,x7 y0,y1,y2 domain=com.microsoft "
     "unidirectional:i=1 num_heads:i=2\n",
     "0.4774615 -0.02869226 0.2859471 -0.03793268 0.3212608 0.05126426 -0.04232222 "
     "-0.004576966;0.75 0.125 0.125 -0.25 -0.125 0.5 0.125 0.375 0.5 -0.25 0 "
     "-0.375;0.375 0.125 0.625 -0.25 -0.125 0.375 -0.125 -0.625 0.75 0.625 -0.875 "
     "-0.25"},
    {"init x0 1 1,2,16 -0.375,-0.375,-0.125,1,-0.25,-0.125,-0.25,0.125,0.875,0.75,"
     "-0.25,-0.5,0.75,-0,0.375,-0.875,0.75,-0.375,-0,-0.625,-0.125,0.625,0.625,-0,"
     "0.5,-0.125,-0.25,0.125,-0.625,-0.375,0.375,0.5\n"
     "init x1 1 1,2,8 -0.875,0.5,0.625,-0.125,-0.875,0.375,-0.5,0.25,-0.25,0.25,"
     "-0.5,-0,0,0.25,-0.625,0.875\n"
     "init x2 1 1,2,8 -0.375,-0.375,-0.5,-0.875,-0.125,0.5,0.375,-0.625,-0.75,"
     "-0.375,0.5,-0,0.875,0.375,0.25,0.5\n"
     "init x5 6 1 1\n"
     "init x6 6 - 2\n"
     "node GroupQueryAttention x0,x1,x2,_,_,x5,x6 y0,y1,y2 domain=com.microsoft "
     "num_heads:i=2 kv_num_heads:i=1\n",
     "-0.375 -0.375 -0.5 -0.875 -0.125 0.5 0.375 -0.625 -0.375 -0.375 -0.5 -0.875 "
     "-0.125 0.5 0.375 -0.625 -0.569747 -0.375 0.01932531 -0.4205904 0.3943253 "
     "0.4350843 0.3100843 -0.04075904 -0.5759423 -0.375 0.03584617 -0.4061346 "
     "0.4108462 0.4330192 0.3080193 -0.02217305;-0.875 0.5 0.625 -0.125 -0.875 "
     "0.375 -0.5 0.25 -0.25 0.25 -0.5 -0 0 0.25 -0.625 0.875;-0.375 -0.375 -0.5 "
     "-0.875 -0.125 0.5 0.375 -0.625 -0.75 -0.375 0.5 -0 0.875 0.375 0.25 0.5"},
    {"init x0 1 1,1,32 0.375,0.25,0.5,-0.625,0.875,0.75,-0.75,-0.375,-0.875,0.625,"
     "0.875,1,0.25,0.375,0.375,0.125,0.875,0.25,-0.375,0,-1,0.5,0.375,-0.125,0.75,"
     "0.5,-0.375,-0.875,-0.75,-0.625,-0.375,-0.125\n"
     "init x3 1 1,1,2,8 0.5,-0.25,-0.5,-0.125,-0,-0.75,-0.125,0.25,-0.75,-0.75,"
     "-0.625,-0.375,0.875,-1,-0.625,-0.625\n"
     "init x4 1 1,1,2,8 -0,-1,-0.125,-0.625,-0.5,0.625,-0.625,0.25,-0.125,-0.125,"
     "0.625,-0.625,0.875,0.75,0.375,-0.875\n"
     "init x5 6 1 2\n"
     "init x6 6 - 3\n"
     "node GroupQueryAttention x0,_,_,x3,x4,x5,x6 y0,y1,y2 domain=com.microsoft "
     "num_heads:i=2 kv_num_heads:i=1\n",
     "0.1811757 -0.1944819 0.0936389 -0.7018055 -0.03515745 0.2902133 -0.1542687 "
     "-0.3083748 0.2360625 -0.1576159 0.02943867 -0.7174008 -0.1398618 0.2041359 "
     "-0.2034799 -0.2588603;0.5 -0.25 -0.5 -0.125 -0 -0.75 -0.125 0.25 -0.75 -0.75 "
     "-0.625 -0.375 0.875 -1 -0.625 -0.625 0.875 0.25 -0.375 0 -1 0.5 0.375 "
     "-0.125;-0 -1 -0.125 -0.625 -0.5 0.625 -0.625 0.25 -0.125 -0.125 0.625 -0.625 "
     "0.875 0.75 0.375 -0.875 0.75 0.5 -0.375 -0.875 -0.75 -0.625 -0.375 -0.125"},
    {"init x0 1 1,3,16 0.875,-0.5,0.75,0.375,0.75,-0.25,-1,0.625,-0.5,-0.75,0.625,"
     "0.375,-0.625,-0.5,0.875,-0.5,0.375,-0.75,0.625,-0.75,0,-0.875,0.125,0.75,"
     "-0.875,-0.5,0.5,0.25,-0.375,0.25,-0.125,0.75,-0.375,0.5,0.25,0.5,-0.25,0.5,"
     "0.375,-0.25,-1,0.875,0.375,-0.625,0.5,-0.5,-0,0.75\n"
     "init x1 1 1,3,8 -0.125,-0.375,-0.375,-0.875,-0.5,-0.5,-0.625,-0.875,-0.125,"
     "-0.625,0.5,0.875,-0.5,0.125,0,-0.875,-0.75,0.75,-0,0.625,-0.875,0.25,0.75,"
     "0.75\n"
     "init x2 1 1,3,8 -1,0,-0.25,0.5,-0.875,-0.5,0.625,-0,-0.125,0.875,-0.375,"
     "-0.875,-0.25,-0.75,-0.875,0.125,0.875,0.125,0.25,-0.375,0.125,0.5,0.125,"
     "0.625\n"
     "init x5 6 1 2\n"
     "init x6 6 - 3\n"
     "node GroupQueryAttention x0,x1,x2,_,_,x5,x6 y0,y1,y2 domain=com.microsoft "
     "local_window_size:i=2 softcap:f=0.5 num_heads:i=2 kv_num_heads:i=1\n",
     "-1 0 -0.25 0.5 -0.875 -0.5 0.625 0 -1 0 -0.25 0.5 -0.875 -0.5 0.625 0 "
     "-0.6382828 0.3617172 -0.3016739 -0.06841275 -0.6166306 -0.6033478 0.004913356 "
     "0.05167389 -0.4840466 0.5159534 -0.3237076 -0.3107839 -0.5064619 -0.6474153 "
     "-0.2594915 0.07370763 0.4123452 0.4719911 -0.03915925 -0.6063274 -0.04849555 "
     "-0.07831851 -0.3376548 0.3936726 0.5498588 0.3688558 0.04678678 -0.5375705 "
     "0.003072068 0.09357356 -0.2001411 0.4624294;-0.125 -0.375 -0.375 -0.875 -0.5 "
     "-0.5 -0.625 -0.875 -0.125 -0.625 0.5 0.875 -0.5 0.125 0 -0.875 -0.75 0.75 -0 "
     "0.625 -0.875 0.25 0.75 0.75;-1 0 -0.25 0.5 -0.875 -0.5 0.625 -0 -0.125 0.875 "
     "-0.375 -0.875 -0.25 -0.75 -0.875 0.125 0.875 0.125 0.25 -0.375 0.125 0.5 "
     "0.125 0.625"},
    {"init x0 1 1,2,16 0.125,-0,-0.625,0.25,0.625,-0.75,0.125,0.5,-0.25,-0.5,-0.25,"
     "0.125,0.375,0.125,-0.75,0.625,0.875,-0.75,-0.5,-0.625,0.75,0.875,-0.875,"
     "-0.375,-0.625,-0,0.875,-0.875,-0.625,-0,0,0.5\n"
     "init x1 1 1,2,8 -0.125,-0.75,-0.25,1,0.5,-0.75,0.625,-0.375,0.625,-1,0.75,"
     "-0.625,-0.125,0.375,0,-0.625\n"
     "init x2 1 1,2,8 -0.75,-0.375,-0.875,-0.625,-0.75,-0.125,-0.25,0.125,-0.5,"
     "-0.875,-0.375,0.5,-0.5,-0.25,0.5,-0.125\n"
     "init x5 6 1 1\n"
     "init x6 6 - 2\n"
     "init x11 1 2 0.125,-0.625\n"
     "node GroupQueryAttention x0,x1,x2,_,_,x5,x6,_,_,_,_,x11 y0,y1,y2 "
     "domain=com.microsoft causal:i=0 num_heads:i=2 kv_num_heads:i=1\n",
     "-0.4421173 -0.3445973 -0.474624 -0.187241 -0.4421173 -0.1066299 -0.01559786 "
     "0.03250666 -0.4921621 -0.4768397 -0.4972696 -0.07168919 -0.4921621 -0.1435626 "
     "0.08208846 0.005107492 -0.4011696 -0.5108286 -0.3646166 0.1207161 -0.4011696 "
     "-0.1495933 0.1972034 -0.03655297 -0.4483054 -0.5508125 -0.4141364 0.1055132 "
     "-0.4483054 -0.1618268 0.199002 -0.03416904;-0.125 -0.75 -0.25 1 0.5 -0.75 "
     "0.625 -0.375 0.625 -1 0.75 -0.625 -0.125 0.375 0 -0.625;-0.75 -0.375 -0.875 "
     "-0.625 -0.75 -0.125 -0.25 0.125 -0.5 -0.875 -0.375 0.5 -0.5 -0.25 0.5 -0.125"},
    {"init x0 1 1,2,1,3,1 0,1,4,0,2,8\n"
     "node MultiHeadAttention x0 y0,y1,y2 domain=com.microsoft num_heads:i=1\n",
     "6 6;1 2;4 8"},
    {"init x0 1 1,1,2 0,0\n"
     "init x1 1 1,2,2,2,1 1,4,5,6,2,8,7,2\n"
     "node MultiHeadAttention x0,x1 y0,y1,y2 domain=com.microsoft num_heads:i=2\n",
     "6 4;1 2 5 7;4 8 6 2"},
    {"init x0 1 1,2,1 1,2\n"
     "init x1 1 1,3 0,3,4\n"
     "node Attention x0,x1 y0,y1 domain=com.microsoft num_heads:i=1\n",
     "6 6;3 6 4 8"},
};

#define HEADER "opset 21\nopset com.microsoft 1\n"
#define QKV    "in q 1 1,2,8\nin k 1 1,2,4\nin z 6 1\nin t 6 -\nout y0 1 *\n"

typedef struct refused {
    const char *lines, *why;
} refused;

static const refused refusals[] = {
    {"in x 1 1,2,4\nin w 1 4,12\nout y0 1 *\nnode Attention x,w y0 domain=com.microsoft\n",
     "num_heads out of range (got 0"},
    {"in x 1 1,2,4\nin w 1 4,16\nout y0 1 *\n"
     "node Attention x,w y0 domain=com.microsoft num_heads:i=2 qkv_hidden_sizes:is=4,8,4\n",
     "qkv_hidden_sizes[1] is wrong (got 8)"},
    {"in x 1 1,2,4\nin w 1 4,12\nout y0 1 *\n"
     "node Attention x,w y0 domain=com.microsoft num_heads:i=2 do_rotary:i=1\n",
     "Attention with do_rotary"},
    {QKV "node GroupQueryAttention q y0 domain=com.microsoft num_heads:i=2 kv_num_heads:i=1\n",
     "input 5, the lengths of the sequences, is missing"},
    {QKV "node GroupQueryAttention q,k,k,_,_,z,t y0 domain=com.microsoft num_heads:i=2 "
         "kv_num_heads:i=1 do_rotary:i=1\n",
     "input 7, the cos_cache, is missing"},
    {"in q 1 1,4,2,8\nin l 7 1\nout y0 1 *\nnode Attention q,q,q,_,_,_,l y0 mask_value:f=1\n",
     "Attention has no attribute 'mask_value'"},
    {"in q 1 1,4,2,8\nin l 7 1\nout y0 1 *\nnode Attention q,q,q,_,_,_,l,q y0\n",
     "Attention has a wrong number of inputs (got 8, need 3 to 7)"},
};

static zc_status import(const char *header, const char *lines, zc_graph **g, zc_diag *diag)
{
    zc_buf text = {0}, model = {0};
    zc_buf_puts(&text, HEADER);
    zc_buf_puts(&text, header);
    zc_buf_puts(&text, lines);
    assert_false(text.failed);
    onnx_text(text.data, &model);
    zc_status status = zc_import_bytes(model.data, model.len, NULL, g, diag);
    zc_buf_fini(&text);
    zc_buf_fini(&model);
    return status;
}

/* ---- computing ---- */

static void run_node(const zc_graph *g, const zc_node *n, bool reference, zc_tensor *values)
{
    zc_tensor in[OPERANDS_MAX] = {{0}}, out[OPERANDS_MAX] = {{0}};
    zc_diag *diag = zc_diag_create();
    assert_true(n->nin <= OPERANDS_MAX && n->nout <= OPERANDS_MAX);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) in[i] = values[n->in[i]];
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) out[i].dtype = zc_val(g, n->out[i])->type.dtype;
    if (zc_cpu_eval(n->op, n->attrs, n->nin, in, n->nout, out, reference, n->name, diag) != ZC_OK)
        fail_msg("%s", zc_diag_text(diag, 0));
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) values[n->out[i]] = out[i];
    zc_diag_destroy(&diag);
}

static void compare(size_t at, const zc_tensor *got, const char **want)
{
    for (int64_t i = 0; i < zc_tensor_numel(got); i++) {
        char *end;
        double x = strtod(*want, &end), y = zc_get(got, i);
        if (end == *want) fail_msg("case %zu: more elements than are wanted", at);
        if (!(fabs(x - y) <= 1e-5 * (1 + fabs(x))))
            fail_msg("case %zu: element %lld is %.9g, need %.9g", at, (long long)i, y, x);
        *want = end;
    }
    if (**want == ';') (*want)++;
}

static void compute(size_t at, const zc_graph *g, bool reference)
{
    zc_tensor values[VALUES_MAX] = {{0}};
    const char *want = cases[at].want;
    assert_true(g->values.len <= VALUES_MAX);
    for (size_t i = 0; i < g->values.len; i++)
        if (zc_val(g, (zc_vid)i)->data) values[i] = *zc_val(g, (zc_vid)i)->data;
    for (size_t i = 0; i < g->top.nodes.len; i++)
        run_node(g, zc_node_at(g, g->top.nodes.data[i]), reference, values);
    for (size_t i = 0; i < g->top.outputs.len; i++)
        compare(at, &values[g->top.outputs.data[i]], &want);
    if (*want) fail_msg("case %zu: fewer elements than are wanted", at);
    for (size_t i = 0; i < g->values.len; i++)
        if (!zc_val(g, (zc_vid)i)->data) free(values[i].data);
}

static void test_computed(void **state)
{
    (void)state;
    static const char *const outs[] = {"out y0 1 *\n", "out y1 1 *\n", "out y2 1 *\n"};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        char header[64] = "";
        zc_graph *g = NULL;
        zc_diag *diag = zc_diag_create();
        size_t n = 0;
        for (const char *p = cases[i].want; p; p = strchr(p + 1, ';')) strcat(header, outs[n++]);
        if (import(header, cases[i].lines, &g, diag) != ZC_OK)
            fail_msg("case %zu: %s", i, zc_diag_text(diag, 0));
        compute(i, g, true);
        compute(i, g, false);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(refusals); i++) {
        zc_graph *g = NULL;
        zc_diag *diag = zc_diag_create();
        zc_status status = import("", refusals[i].lines, &g, diag);
        if (status == ZC_OK || !strstr(zc_diag_text(diag, 0), refusals[i].why))
            fail_msg("%s: need \"%s\"", zc_diag_text(diag, 0), refusals[i].why);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

/* Whatever is open stays open. */
static void test_symbolic(void **state)
{
    (void)state;
    zc_graph *g = NULL;
    zc_buf text = {0};
    zc_diag *diag = zc_diag_create();
    zc_status status =
        import("",
               "in x 1 n,s,8\nin w 1 8,48\nin b 1 48\nin p 1 2,n,4,p,4\nout y 1 *\nout r 1 *\n"
               "node Attention x,w,b,_,p y,r domain=com.microsoft num_heads:i=4\n",
               &g, diag);
    if (status != ZC_OK) fail_msg("%s", zc_diag_text(diag, 0));
    zc_graph_print(g, false, &text);
    assert_non_null(strstr(text.data, "%y: f32[n,s,16]"));
    assert_non_null(strstr(text.data, ": f32[2,n,4,s+p,4] = Concat("));
    zc_buf_fini(&text);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_symbolic),
    };
    return cmocka_run_group_tests_name("import_attention", tests, NULL, NULL);
}
