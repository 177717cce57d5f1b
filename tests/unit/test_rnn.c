/* RNN, GRU, LSTM. The expected numbers are another implementation's (ONNX Runtime's). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "support/op_random.h"
#include "support/op_text.h"

static void rnn(void **state)
{
    (void)state;
    op_eval("RNN", "hidden_size=2",
            "f32[3,2,2] 0.25 0.75 0.5 -0.5 -0.375 0.75 -1 0.625 0.625 -0.125 -0.375 -0.5; "
            "f32[1,2,2] -0.5 -0.125 0 0.125; f32[1,2,2] 1 0.625 0.25 1; f32[1,4] -0.625 "
            "-0.625 0.25 -0.875",
            "f32[3,1,2,2] -0.5325873 -0.8866951 -0.50983 -0.9158245 -0.8782406 -0.9844985 "
            "-0.7760433 -0.9856552 -0.9740291 -0.9913531 -0.908187 -0.9917317; f32[1,2,2] "
            "-0.9740291 -0.9913531 -0.908187 -0.9917317",
            1e-5);
    op_eval("RNN", "direction=reverse hidden_size=2",
            "f32[3,2,2] -0.875 0 -0.125 0.875 0.25 0 -0 -0.5 -1 -0.625 0.375 -0.625; "
            "f32[1,2,2] -0.25 -1 0.625 -0.75; f32[1,2,2] -0.5 0.75 0 0.75; f32[1,4] 0.25 "
            "0.5 -0.875 0.125; i32[2] 3 1; f32[1,2,2] 0 0.75 -0.25 0.25",
            "f32[3,1,2,2] 0.4293711 0.6265869 -0.819814 0.07796645 -0.4154471 0.8768692 0 "
            "0 0.6709671 0.7744092 0 0; f32[1,2,2] 0.4293711 0.6265869 -0.819814 "
            "0.07796645",
            1e-5);
    op_eval("RNN",
            "activations=LeakyRelu,Affine activation_alpha=0.25,0.5 activation_beta=0.125 "
            "clip=0.75 direction=bidirectional hidden_size=2",
            "f32[3,2,2] -0.875 -0.25 -0.375 -0.75 0.625 -0.25 1 0.125 0.25 0.25 0.375 "
            "-0.75; f32[2,2,2] -0.125 -0.5 -0.25 -0.75 0.875 -0.625 0.375 -0.375; "
            "f32[2,2,2] 0.75 0.375 -0.75 0.75 0.875 0.75 0.125 -0.75; f32[2,4] -0.625 "
            "0.875 0.125 -0.625 0.75 0.25 0.125 -0.25",
            "f32[3,2,2,2] -0.06640625 0.65625 -0.01953125 0.75 0.5 -0.06347656 0.5 "
            "0.1536865 -0.06420898 0.75 -0.1052246 0.4833984 0.5 0.2734375 0.5 0.1943359 "
            "-0.1057892 0.6106567 -0.01737976 0.75 0.5 0.125 0.5 0.3359375; f32[2,2,2] "
            "-0.1057892 0.6106567 -0.01737976 0.75 0.5 -0.06347656 0.5 0.1536865",
            1e-5);
}

static void gru(void **state)
{
    (void)state;
    op_eval("GRU", "hidden_size=2",
            "f32[3,2,2] -0.125 -0.5 -0.875 0.75 -0.125 0.125 -0.375 0.5 -1 -0.25 -1 "
            "-0.75; f32[1,6,2] 0.875 0.375 -0.125 0 0.75 -0.25 0.125 0.375 -0.25 0 0.5 "
            "0.875; f32[1,6,2] -0.75 0.875 -1 0.5 0.625 -0.75 -0.125 0.625 -1 0.25 0.625 "
            "0; f32[1,12] 0.5 -0.5 -0.625 -0.25 -0.625 -0.25 0.875 0.125 -0.375 -0.5 "
            "0.875 -0.125; i32[2] 2 3; f32[1,2,2] 1 0 0 0.75",
            "f32[3,1,2,2] 0.5256755 -0.4361151 0.08882745 0.3222258 0.3504715 -0.2580935 "
            "0.1376691 0.07574169 0 0 0.2780445 -0.5012867; f32[1,2,2] 0.3504715 "
            "-0.2580935 0.2780445 -0.5012867",
            1e-5);
    op_eval("GRU", "linear_before_reset=1 direction=reverse hidden_size=2",
            "f32[3,2,2] 0.5 0.125 -0.125 0.75 -0.125 0.875 -0.875 -0.125 0 0.875 -0.5 "
            "0.625; f32[1,6,2] 0.375 0.375 0.25 1 -0.375 -0.25 -0.625 -0.875 -0.625 0.875 "
            "0.625 -0.75; f32[1,6,2] 0.25 -0 0.25 0.375 -0.375 0.875 -0.125 0.25 0.25 "
            "-0.625 -0.875 -0.125; f32[1,12] 0.5 0.625 0.5 -0.75 0.875 0.625 0.75 0 0.875 "
            "-0.875 -1 -1",
            "f32[3,1,2,2] 0.1914716 0.1364033 0.3404647 -0.1020649 0.2315267 -0.05456098 "
            "0.2546973 -0.09511837 0.1208387 -0.0209122 0.1569724 -0.06937835; f32[1,2,2] "
            "0.1914716 0.1364033 0.3404647 -0.1020649",
            1e-5);
    op_eval("GRU",
            "activations=HardSigmoid,Softsign,Sigmoid,ScaledTanh activation_alpha=0.25,0.5 "
            "activation_beta=0.5,2 direction=bidirectional hidden_size=2",
            "f32[2,2,2] -0.5 -0.5 -0.625 0.125 -0.875 0.125 -0.625 0.375; f32[2,6,2] -1 "
            "-0.375 0.875 0.125 0.625 0.375 0.25 -0.625 0.125 -0.875 0.625 0.875 0.75 "
            "-0.875 -0.375 -0.375 -0.75 0.25 0.625 -0.375 0.75 0.625 -0.75 0.5; "
            "f32[2,6,2] 0.75 -0.625 0.125 0.25 0.25 -0.75 0.375 0.25 0.625 0.625 -0.375 "
            "0.5 0.75 0.75 -0.625 -1 0.25 -0.625 0.125 0.875 -0.25 -0.5 -0.125 0.375",
            "f32[2,2,2,2] 0.08948864 -0.2678571 -0.05612664 -0.1389101 -0.3613341 "
            "0.1837814 -0.26966 0.3037487 0.01949569 -0.3162237 -0.1506729 -0.09759854 "
            "-0.2797918 0.1921024 -0.1506784 0.2060984; f32[2,2,2] 0.01949569 -0.3162237 "
            "-0.1506729 -0.09759854 -0.3613341 0.1837814 -0.26966 0.3037487",
            1e-5);
}

static void lstm(void **state)
{
    (void)state;
    op_eval("LSTM", "hidden_size=2",
            "f32[3,2,2] -0.75 -0.25 -0.75 0.375 0.625 -0.25 -0.25 0.125 -0.625 -0.5 "
            "-0.375 -0.125; f32[1,8,2] -0.875 0.5 0.125 -0.375 -0.875 0.5 -0.75 -0.75 "
            "-0.75 -0.875 0.875 -0.5 -0.375 0.625 0.25 -0.625; f32[1,8,2] -0.125 0.75 "
            "-0.25 0.375 -0.75 0.5 0.5 0.625 0.375 -0.25 -0.875 0 0.5 -0.625 -0.5 0.125; "
            "f32[1,16] 0.5 0.75 -0.75 -0.625 0.625 0.25 0.5 1 0.875 0.625 0.5 -0.25 0.25 "
            "-0.625 0.5 0.5",
            "f32[3,1,2,2] 0.3460509 0.2885733 0.434505 0.191209 0.1806205 0.2508757 "
            "0.3922032 0.2590645 0.4420177 0.4434165 0.4354369 0.3348172; f32[1,2,2] "
            "0.4420177 0.4434165 0.4354369 0.3348172; f32[1,2,2] 1.325092 1.100682 "
            "1.745266 0.9091275",
            1e-5);
    op_eval("LSTM", "clip=0.5 hidden_size=2",
            "f32[3,2,2] 0.5 -0.125 -0.25 -0.125 -0.875 0.75 0.125 -0.25 0.125 0.5 -0.25 "
            "0.625; f32[1,8,2] 0.875 -0.25 -0.75 0.5 1 -0.75 0.375 0.625 0.875 -0.75 "
            "-0.875 1 -0.75 -0.625 0.125 -0.125; f32[1,8,2] 0.5 -0.625 0.875 -0.625 0.5 "
            "-0.875 -0 -0.875 -0.375 -0.375 0.5 -0.125 -0.875 1 0.75 0.875; f32[1,16] "
            "-0.5 -0.25 -0.5 -0.75 -0.875 0 -0.75 -0.625 0.75 -0 -0.625 0.375 -0.5 0 "
            "-0.375 0; i32[2] 1 3; f32[1,2,2] 0.25 0.125 -0.25 0.625; f32[1,2,2] 0.75 "
            "-0.625 -0.75 -0.75; f32[1,6] 1 0.875 -0.5 1 -0.625 0",
            "f32[3,1,2,2] -0.001696503 -0.1220674 -0.1061886 -0.1617528 0 0 -0.130672 "
            "-0.130038 0 0 -0.1148093 -0.1663473; f32[1,2,2] -0.001696503 -0.1220674 "
            "-0.1148093 -0.1663473; f32[1,2,2] -0.004493594 -0.335353 -0.314029 "
            "-0.4433622",
            1e-5);
    op_eval("LSTM", "direction=bidirectional hidden_size=2",
            "f32[2,2,2] -0 0.875 -0.875 -0.375 0.25 -0.875 -0.5 -0.125; f32[2,8,2] 0.75 "
            "0.5 0.625 0.5 0.375 0.75 0.375 0.5 -0.375 -0.625 0.5 -0.625 0.875 0.25 "
            "-0.375 0.875 -0.75 0 -0.875 0.875 0.125 0.625 -0.375 0.625 0.375 0.25 0.875 "
            "-0.125 -0.125 0.375 0.625 -0.375; f32[2,8,2] 0.375 -0.625 0.125 0.5 -0.875 "
            "0.5 -1 0.875 -0.125 -0.125 0.5 0 0.5 -0.875 0.125 0.125 0.875 -0.875 -0.125 "
            "0.25 0.125 -0.875 0.125 -0.5 -0.625 0.75 -0.625 -0.125 0.5 0.375 0.125 "
            "0.625; f32[2,16] -0.125 0.25 0.625 0.375 0.25 -0.25 0.125 -0.25 0.5 -0.25 "
            "-0.125 0.5 0 -0.375 0.625 -0.25 0.75 0.625 -0.125 0.375 -0.875 -0.25 0.75 "
            "0.125 0.125 0.375 0.375 0.125 -0.125 -0.625 -0.375 -0.375; i32[2] 2 1; -; "
            "f32[2,2,2] -0.125 1 -0.25 -0.125 -0.25 0.125 0.875 0.75",
            "f32[2,2,2,2] 0.3301832 0.2954783 -0.1001315 -0.109334 0.2607068 -0.2620718 "
            "0.1979513 -0.210217 0.2412992 -0.1155017 0 0 -0.0220598 0.07457629 0 0; "
            "f32[2,2,2] 0.2412992 -0.1155017 -0.1001315 -0.109334 0.2607068 -0.2620718 "
            "0.1979513 -0.210217; f32[2,2,2] 0.6000801 -0.1907239 -0.2150932 -0.18784 "
            "0.4076632 -0.374391 0.4420694 -0.3386928",
            1e-5);
    op_eval("LSTM",
            "input_forget=1 activations=Sigmoid,Elu,Softplus activation_alpha=0.5 "
            "direction=reverse hidden_size=2",
            "f32[2,2,2] -0.25 -0.5 0.75 -0 0.375 -0.875 0.75 -0.375; f32[1,8,2] -0 -0.625 "
            "-0.125 0.625 0.625 -0 0.5 -0.125 -0.25 0.125 -0.625 -0.375 0.375 0.5 -0.875 "
            "0.5; f32[1,8,2] 0.625 -0.125 -0.875 0.375 -0.5 0.25 -0.25 0.25 -0.5 -0 0 "
            "0.25 -0.625 0.875 -0.375 -0.375; f32[1,16] -0.5 -0.875 -0.125 0.5 0.375 "
            "-0.625 -0.75 -0.375 0.5 -0 0.875 0.375 0.25 0.5 0.5 -0.25",
            "f32[2,1,2,2] 0.381868 0.4410662 0.5444576 0.4786875 0.4576529 0.5028506 "
            "0.5195741 0.5102108; f32[1,2,2] 0.381868 0.4410662 0.5444576 0.4786875; "
            "f32[1,2,2] -0.1614833 -0.1207596 0.06882597 -0.1604098",
            1e-5);
}

/* Layout 1 is layout 0 with the batch first: one sequence, one direction, the same numbers. */
static void batch_first(void **state)
{
    (void)state;
    op_eval("RNN", "hidden_size=1 activations=Affine", "f32[2,1,1] 1 2; f32[1,1,1] 3; f32[1,1,1] 2",
            "f32[2,1,1,1] 3 12; f32[1,1,1] 12", 1e-6);
    op_eval("RNN", "hidden_size=1 activations=affine layout=1",
            "f32[2,2,1] 1 2 0 1; f32[1,1,1] 3; f32[1,1,1] 2; -; -; f32[2,1,1] 0 1",
            "f32[2,2,1,1] 3 12 2 7; f32[2,1,1] 12 7", 1e-6);
}

/* Clipping and activations with bounds leave NaN what it is. */
static void not_a_number(void **state)
{
    (void)state;
    const char *x = "f32[2,1,1] nan 1; f32[1,1,1] 1; f32[1,1,1] 1";
    op_eval("RNN", "hidden_size=1 clip=0.5", x, "f32[2,1,1,1] nan nan; f32[1,1,1] nan", 0);
    static const char *const bounded[] = {
        "Relu",     "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "Softsign",
        "Softplus", "Tanh",      "ScaledTanh",      "Sigmoid"};
    for (size_t i = 0; i < ZC_COUNTOF(bounded); i++) {
        char attrs[64];
        snprintf(attrs, sizeof attrs, "hidden_size=1 activations=%s", bounded[i]);
        op_eval("RNN", attrs, x, "f32[2,1,1,1] nan nan; f32[1,1,1] nan", 0);
    }
    op_eval("RNN", "hidden_size=1 clip=0.5 activations=Affine",
            "f32[2,1,1] inf -inf; f32[1,1,1] 1; f32[1,1,1] 1",
            "f32[2,1,1,1] 0.5 -0.5; f32[1,1,1] -0.5", 0);
    x = "f32[1,1,1] nan; f32[1,%d,1] 1 1 1%s; f32[1,%d,1] 1 1 1%s";
    char in[128];
    snprintf(in, sizeof in, x, 3, "", 3, "");
    op_eval("GRU", "hidden_size=1 clip=3", in, "f32[1,1,1,1] nan; f32[1,1,1] nan", 0);
    op_eval("GRU", "hidden_size=1 clip=3 linear_before_reset=1", in,
            "f32[1,1,1,1] nan; f32[1,1,1] nan", 0);
    snprintf(in, sizeof in, x, 4, " 1", 4, " 1");
    op_eval("LSTM", "hidden_size=1 clip=3", in, "f32[1,1,1,1] nan; f32[1,1,1] nan; f32[1,1,1] nan",
            0);
}

static void lengths(void **state)
{
    (void)state;
    const char *x = "f32[2,2,1] 1 2 3 4; f32[1,1,1] 1; f32[1,1,1] 1; -; ";
    char in[256];
    snprintf(in, sizeof in, "%s%s", x, "i32[2] 0 2; f32[1,2,1] 7 0");
    op_eval("RNN", "hidden_size=1 activations=Affine", in, "f32[2,1,2,1] 0 2 0 6; f32[1,2,1] 7 6",
            1e-6);
    snprintf(in, sizeof in, "%s%s", x, "i32[2] 3 1");
    op_eval_fails("RNN", "hidden_size=1", in, 2, ZC_ERR_INPUT,
                  "sequence_lens[0] out of range (got 3, need [0, 2])");
    snprintf(in, sizeof in, "%s%s", x, "i32[2] 1 -1");
    op_eval_fails("RNN", "hidden_size=1", in, 2, ZC_ERR_INPUT,
                  "sequence_lens[1] out of range (got -1, need [0, 2])");
}

static void empty(void **state)
{
    (void)state;
    op_eval("LSTM", "", "f32[0,1,2]; f32[1,4,2] 1 1 1 1 1 1 1 1; f32[1,4,1] 1 1 1 1",
            "f32[0,1,1,1]; f32[1,1,1] 0; f32[1,1,1] 0", 0);
    op_eval("GRU", "", "f32[2,0,1]; f32[1,3,1] 1 1 1; f32[1,3,1] 1 1 1", "f32[2,1,0,1]; f32[1,0,1]",
            0);
}

static void symbolic_shapes(void **state)
{
    (void)state;
    op_infer("LSTM", "direction=bidirectional", "f32[seq,n,8]; f32[2,12,8]; f32[2,12,3]",
             "f32[seq,2,n,3]; f32[2,n,3]; f32[2,n,3]");
    op_infer("GRU", "layout=1", "f16[n,seq,8]; f16[1,9,8]; f16[1,9,3]; -; i32[n]",
             "f16[n,seq,1,3]; f16[n,1,3]");
    op_infer("RNN", "", "f32*; f32[1,3,8]; f32[1,3,3]", "f32*; f32*");
}

static void bad_models(void **state)
{
    (void)state;
    const char *in = "f32[5,2,8]; f32[1,12,8]; f32[1,12,3]";
    op_infer_fails("LSTM", "", "f32[5]; f32[1,12,8]; f32[1,12,3]", 3,
                   "input 0 has a wrong rank (got 1, need 3)");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[12]; f32[1,12,3]", 3,
                   "input 1 has a wrong rank (got 1, need 3)");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[1,12,8]; f32[3]", 3,
                   "input 2 has a wrong rank (got 1, need 3)");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[1,12,7]; f32[1,12,3]", 3,
                   "W has a wrong shape (got [1,12,7], need [1,12,8])");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[1,9,8]; f32[1,9,3]", 3,
                   "W has a wrong shape (got [1,9,8], need [1,12,8])");
    op_infer_fails("LSTM", "direction=bidirectional", in, 3,
                   "W has a wrong shape (got [1,12,8], need [2,12,8])");
    op_infer_fails("LSTM", "direction=sideways", in, 3,
                   "direction must be forward, reverse or bidirectional (got \"sideways\")");
    op_infer_fails("LSTM", "layout=2", in, 3, "layout must be 0 or 1 (got 2)");
    op_infer_fails("LSTM", "hidden_size=4", in, 3,
                   "hidden_size and the last dimension of R differ (got 4 and 3)");
    op_infer_fails("LSTM", "activations=Tanh", in, 3,
                   "activations has a wrong length (got 1, need 3)");
    op_infer_fails("LSTM", "activations=a,b,c,d,e,f,g,h", in, 3,
                   "activations has a wrong length (got 7 or more, need 3)");
    op_infer_fails("LSTM", "activations=Tanh,Tan,Tanh", in, 3, "unknown activation (got \"Tan\")");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[1,12,8]; f32[1,12,3]; f32[1,12]", 3,
                   "B has a wrong shape (got [1,12], need [1,24])");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[1,12,8]; f32[1,12,3]; -; i32[3]", 3,
                   "sequence_lens has a wrong shape (got [3], need [2])");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f32[1,12,8]; f32[1,12,3]; -; f32[2]", 3,
                   "sequence_lens must be integers (got f32)");
    op_infer_fails("LSTM", "", "f32[5,2,8]; f16[1,12,8]; f32[1,12,3]", 3,
                   "inputs 0 and 1 differ in element type (got f32 and f16)");
    op_infer_fails("LSTM", "", "i32[5,2,8]; i32[1,12,8]; i32[1,12,3]", 3,
                   "input 0 needs a float type (got i32)");
    op_infer_fails("GRU", "", "f32[5,2,8]; f32[1,9223372036854775807,8]; f32[1,9,3]", 2,
                   "W has a wrong shape");
}

/* Odd sizes, so that vectors have tails. */
static void fast_kernels(void **state)
{
    (void)state;
    static const struct {
        zc_op op;
        int64_t gates;
        int outputs;
    } ops[] = {{ZC_OP_RNN, 1, 2}, {ZC_OP_GRU, 3, 2}, {ZC_OP_LSTM, 4, 3}};
    for (size_t i = 0; i < ZC_COUNTOF(ops); i++) {
        for (int64_t hidden = 1; hidden < 60; hidden += 29) {
            union {
                zc_attrs_RNN rnn;
                zc_attrs_GRU gru;
                zc_attrs_LSTM lstm;
            } attrs;
            int64_t rows = ops[i].gates * hidden;
            zc_attrs_default(zc_op_get(ops[i].op), &attrs);
            zc_tensor in[] = {RANDOM(1, 1, 6, 3, 19), RANDOM(2, 0.3f, 1, rows, 19),
                              RANDOM(3, 0.3f, 1, rows, hidden), RANDOM(4, 1, 1, 2 * rows)};
            fast_agrees(ops[i].op, &attrs, 4, in, ops[i].outputs, 0, 2e-6);
            free_tensors(in, 4);
        }
    }
}

/* Its sums are exact, so another's numbers hold but for activations. */
static void quantised_lstm(void **state)
{
    (void)state;
    op_eval("DynamicQuantizeLSTM", "direction=bidirectional hidden_size=2",
            "f32[3,1,3] -0.25 0.625 0.625 0.25 -1 0.25 -0.625 0.625 0.75; i8[2,3,8] 79 -106 "
            "-82 -67 -81 77 94 21 -117 -103 -43 -17 31 -5 -60 -87 49 60 -119 -99 -12 -28 99 "
            "4 -20 -18 42 22 -83 61 65 116 73 -55 -46 38 38 50 94 -53 112 -127 -108 121 113 "
            "-51 -92 -47; i8[2,2,8] -117 100 41 22 -65 -7 -79 70 -7 -120 -63 53 5 -32 -63 "
            "-104 28 41 5 110 109 -75 28 33 -64 -51 -3 62 -53 57 39 -72; f32[2,16] -0.25 "
            "0.875 0.5 -0.375 0.75 -0.25 -0.875 0.125 0.625 0.25 -0.25 0.75 -0.125 -0.25 "
            "-0.75 -0.625 0.375 0.5 -0.5 0.25 0.625 -0.75 -0.5 0 0 -0.25 -0.25 -0.75 0.125 "
            "0.75 -0.625 0.5; -; -; -; -; f32[2] 0.0078125 0.005; i8[2] 0 0; f32[2] 0.01 "
            "0.0078125; i8[2] 0 0",
            "f32[3,2,1,2] -0.1667092 -0.2447997 -0.1830394 0.07063408 -0.3232364 0.03448198 "
            "-0.2540831 0.1207281 -0.3009345 -0.2760129 -0.111551 -0.04167692; f32[2,1,2] "
            "-0.3009345 -0.2760129 -0.1830394 0.07063408; f32[2,1,2] -0.9825797 -0.6260986 "
            "-1.262158 0.157407",
            1e-5);
    op_infer_fails("DynamicQuantizeLSTM", "", "f32[5,2,8]; i8[1,8,12]; i8[1,3,12]", 3,
                   "input 8 is left out");
    op_infer_fails("DynamicQuantizeLSTM", "",
                   "f32[5,2,8]; i8[1,8,12]; i8[1,3,12]; -; -; -; -; -; f32[1,3]; -; f32[1]", 3,
                   "a scale has a wrong shape (got [1,3], need [1,12])");
}

static zc_tensor random_bytes(uint64_t seed, zc_dtype kind, int64_t a, int64_t b, int64_t c)
{
    zc_tensor t = RANDOM(seed, 50, a, b, c);
    uint8_t *bytes = t.data;
    for (int64_t i = 0; i < zc_tensor_numel(&t); i++) {
        const float v = ((float *)t.data)[i]; /* behind what is overwritten */
        bytes[i] = (uint8_t)(int)v;
    }
    t.dtype = kind;
    return t;
}

/* A step, so that a state's rounding cannot become another quantum. */
static void fast_quantised_lstm(void **state)
{
    (void)state;
    for (int64_t hidden = 1; hidden < 60; hidden += 29)
        for (int each = 0; each < 2; each++) {
            const int64_t rows = 4 * hidden;
            const zc_dtype kind = each ? ZC_I8 : ZC_U8;
            zc_attrs_DynamicQuantizeLSTM attrs;
            zc_attrs_default(zc_op_get(ZC_OP_DynamicQuantizeLSTM), &attrs);
            attrs.direction = "bidirectional";
            zc_tensor in[12] = {RANDOM(1, 1, 1, 3, 19),
                                random_bytes(2, kind, 2, 19, rows),
                                random_bytes(3, kind, 2, hidden, rows),
                                RANDOM(4, 1, 2, 2 * rows),
                                {0},
                                RANDOM(5, 1, 2, 3, hidden),
                                RANDOM(6, 1, 2, 3, hidden),
                                {0},
                                each ? RANDOM(7, 0.003f, 2, rows) : RANDOM(7, 0.003f, 2),
                                random_bytes(8, kind, 2, 1, 1),
                                each ? RANDOM(9, 0.003f, 2, rows) : RANDOM(9, 0.003f, 2),
                                random_bytes(10, kind, 2, 1, 1)};
            in[9].rank = in[11].rank = 1;
            fast_agrees(ZC_OP_DynamicQuantizeLSTM, &attrs, 12, in, 3, 0, 2e-6);
            free_tensors(in, 12);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rnn),
        cmocka_unit_test(gru),
        cmocka_unit_test(lstm),
        cmocka_unit_test(batch_first),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(lengths),
        cmocka_unit_test(empty),
        cmocka_unit_test(symbolic_shapes),
        cmocka_unit_test(bad_models),
        cmocka_unit_test(fast_kernels),
        cmocka_unit_test(quantised_lstm),
        cmocka_unit_test(fast_quantised_lstm),
    };
    return cmocka_run_group_tests_name("rnn", tests, NULL, NULL);
}
