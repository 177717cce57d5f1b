/* Softmax and normalisations. Expected numbers come from numpy formulas and ONNX Runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "cpu/rows.h"
#include "cpu/vmath.h"
#include "support/op_random.h"
#include "support/op_text.h"

static void softmax(void **state)
{
    (void)state;
    op_eval("Softmax", "axis=-1", "f32[2,5] 1 3 2 -2 -1.5 3 -4 2.5 2.5 -0.5",
            "f32[2,5] 0.08897422 0.6574355 0.241857 0.004429766 0.007303449 0.4455989 "
            "0.0004063336 0.2702694 0.2702694 0.01345592",
            1e-5);
    op_eval("LogSoftmax", "axis=-1", "f32[2,5] 1 3 2 -2 -1.5 3 -4 2.5 2.5 -0.5",
            "f32[2,5] -2.419409 -0.4194086 -1.419409 -5.419408 -4.919408 -0.808336 "
            "-7.808336 -1.308336 -1.308336 -4.308336",
            1e-5);
    op_eval("Softmax", "axis=0", "f32[3,2] -1.5 -2 -2 -0.5 0 0.5",
            "f32[3,2] 0.1642516 0.05661173 0.09962365 0.2537162 0.7361248 0.6896721", 1e-5);
    op_eval("LogSoftmax", "axis=0", "f32[3,2] -1.5 -2 -2 -0.5 0 0.5",
            "f32[3,2] -1.806356 -2.871539 -2.306356 -1.371539 -0.3063557 -0.371539", 1e-5);
    op_eval("Softmax", "axis=1", "f32[2,3,2] 4 2.5 1 4 -2.5 -2.5 1 -3.5 -3.5 0 -0.5 3.5",
            "f32[2,3,2] 0.9512119 0.1822016 0.04735805 0.8165708 0.001430089 0.001227665 "
            "0.8102158 0.0008843699 0.009000684 0.02928631 0.1807836 0.9698293",
            1e-5);
    op_eval("LogSoftmax", "axis=1", "f32[2,3,2] 4 2.5 1 4 -2.5 -2.5 1 -3.5 -3.5 0 -0.5 3.5",
            "f32[2,3,2] -0.05001846 -1.702642 -3.050019 -0.2026417 -6.550018 -6.702641 "
            "-0.2104547 -7.030635 -4.710455 -3.530635 -1.710455 -0.03063518",
            1e-5);
}

static void batch_norm(void **state)
{
    (void)state;
    op_eval("BatchNormalization", "epsilon=0.25",
            "f32[2,2,3] 0.25 0 -0 -0.5 -1 -0.625 0.375 -0.625 -0.25 -1 0.625 -0.75; "
            "f32[2] -0.5 0.75; f32[2] 0 0.75; f32[2] 0.25 0.5; f32[2] 1.375 0.625",
            "f32[2,2,3] 0 0.09805807 0.09805807 -0.05178368 -0.4526755 -0.1520066 "
            "-0.04902903 0.3432032 0.1961161 -0.4526755 0.8502229 -0.2522296",
            1e-5);
    op_eval("BatchNormalization", "epsilon=0.25",
            "f32[3,2] 0 0.75 -0.25 0.25 -0.875 -0.25; f32[2] -0.375 -0.75; f32[2] 0.625 "
            "-0.25; f32[2] 1 0.125; f32[2] 0.75 0.75",
            "f32[3,2] 1 -0.71875 1.09375 -0.34375 1.328125 0.03125", 1e-5);
    op_eval("BatchNormalization", "epsilon=0.25 training_mode=1 momentum=0.75",
            "f32[2,2,2] 0.375 -0.75 -0.125 -0.5 -0.25 -0.75 0.875 -0.625; f32[2] 0.375 "
            "-0.375; f32[2] 0.75 0.375; f32[2] -0.75 0.75; f32[2] 1.375 1.25",
            "f32[2,2,2] 1.145742 0.5263197 0.3901709 0.5722214 0.8016185 0.5263197 "
            "-0.09529716 0.6329049; f32[2] -0.6484375 0.5390625; f32[2] 1.084717 1.02417",
            1e-5);
}

static void instance_and_group_norm(void **state)
{
    (void)state;
    op_eval("InstanceNormalization", "epsilon=0.125",
            "f32[2,2,3] 0.125 -0.75 -0.625 0.875 0.125 -0.625 0.75 0.25 0.125 -0.25 "
            "-0.125 -0.5; f32[2] -0.875 0.75; f32[2] -0.125 0.125",
            "f32[2,2,3] -1.029946 0.4318901 0.2230563 0.920495 0.125 -0.6704952 "
            "-0.8625613 0.1208538 0.3667076 0.2058746 0.4484983 -0.2793729",
            1e-5);
    op_eval("GroupNormalization", "num_groups=2 epsilon=0.125",
            "f32[1,4,2] -0.375 0.5 -1 -0.25 -1 -0.75 0.875 0.375; f32[4] -0.125 0 0.75 "
            "-0.25; f32[4] 0.125 0.375 -0.25 0",
            "f32[1,4,2] 0.1433199 -0.02766624 0.375 0.375 -1.019897 -0.7999267 -0.2932942 "
            "-0.1466471",
            1e-5);
    op_eval("MsGroupNorm", "groups=2 epsilon=0.125 channels_last=0",
            "f32[1,4,2] -0.375 0.5 -1 -0.25 -1 -0.75 0.875 0.375; f32[4] -0.125 0 0.75 "
            "-0.25; f32[4] 0.125 0.375 -0.25 0",
            "f32[1,4,2] 0.1433199 -0.02766624 0.375 0.375 -1.019897 -0.7999267 -0.2932942 "
            "-0.1466471",
            1e-5);
    op_eval("MsGroupNorm", "groups=2 epsilon=0.125 activation=1",
            "f32[2,3,4] 0.5 0.875 -0.75 0.875 -1 0.5 0.625 -0.75 -0.125 0.625 -1 0.25 "
            "0.625 0 0.5 -0.5 -0.625 -0.25 -0.625 -0.25 0.875 0.125 -0.375 -0.5; f32[4] "
            "-0.125 0 0.75 -0.25; f32[4] 0.125 0.375 -0.25 0",
            "f32[2,3,4] 0.04049483 0.22225 -0.2512631 -0.129837 0.1976395 0.22225 "
            "0.2668634 0.1048106 0.1019342 0.22225 -0.2723997 -0.05411763 0.0119594 "
            "0.22225 0.6450812 0.05326189 0.1575866 0.22225 -0.2384833 -0.01003605 "
            "-0.01333766 0.22225 -0.1516912 0.05326189",
            1e-5);
}

static void layer_norm(void **state)
{
    (void)state;
    op_eval("LayerNormalization", "epsilon=0.25",
            "f32[2,4] 0.875 -0.125 1 0 0 0.75 0.5 0.125; f32[4] -0.125 0.75 -0.125 0.875; "
            "f32[4] -0.875 -0.125 0 0.875",
            "f32[2,4] -0.9520395 -0.7193044 -0.09905073 0.3357238 -0.8011861 0.3984075 "
            "-0.03355176 0.5461928; f32[2,1] 0.4375 0.34375; f32[2,1] 1.408721 1.71785",
            1e-5);
    op_eval("LayerNormalization", "epsilon=0.25 axis=1",
            "f32[2,2,3] -0.5 0.625 0.375 0.375 0.25 1 -0.375 -0.25 -0.625 -0.875 -0.625 "
            "0.875; f32[2,3] 0.625 -0.75 0.25 -0 0.25 0.375",
            "f32[2,2,3] -0.7911814 -0.3010349 0.007718848 -0 -0.03859422 0.3589263 "
            "-0.05166642 -0.0619997 -0.1033328 0 -0.1033328 0.5889972; f32[2,1,1] "
            "0.3541667 -0.3125; f32[2,1,1] 1.482018 1.32266",
            1e-5);
}

static void rms_norm(void **state)
{
    (void)state;
    op_eval("RMSNormalization", "axis=-1 epsilon=0.25",
            "f32[2,4] -0.375 0.875 -0.125 0.25 0.25 -0.625 -0.875 -0.125; f32[4] 0.5 "
            "0.625 0.5 -0.75",
            "f32[2,4] -0.2662069 0.776437 -0.08873565 -0.266207 0.1672484 -0.5226513 "
            "-0.5853694 0.1254363; f32[2,1] 1.41977 1.337987",
            1e-5);
}

static void skip_norm(void **state)
{
    (void)state;
    op_eval("SkipLayerNormalization", "epsilon=0.25",
            "f32[1,2,3] 0.875 0.625 0.75 0 0.875 -0.875; f32[1,2,3] -1 -1 -0.5 -0.5 "
            "-0.625 0.125; f32[3] -0.875 0.125 -0.625; f32[3] 0.375 -1 -0.375; f32[3] "
            "0.875 0.125 0.625",
            "f32[1,2,3] 0.0153276 -1.124784 -0.7420126 0.1111776 -0.9623111 0.001889139; "
            "f32[1,2,1] 0.4583333 0.2083333; f32[1,2,1] 1.409328 1.809068; f32[1,2,3] "
            "0.75 -0.25 0.875 0.375 0.375 -0.125",
            1e-5);
    op_eval("SkipLayerNormalization", "epsilon=0.25",
            "f32[2,2,2] 0.375 0.25 -0.625 0.125 -0.875 0.625 0.875 0.75; f32[2,2] -0.875 "
            "-0.375 -0.375 -0.75; f32[2] 0.25 0.625",
            "f32[2,2,2] -0.08778086 0.2194522 -0.08778086 0.2194522 -0.2236068 0.559017 "
            "0.1118034 -0.2795085",
            1e-5);
    op_eval("SkipSimplifiedLayerNormalization", "epsilon=0.25",
            "f32[1,2,3] -0.375 0.75 0.625 -0.75 0.5 0.75; f32[1,2,3] -0.625 0.125 0.25 "
            "0.25 -0.75 0.375; f32[3] 0.25 0.625 0.625; f32[3] -0.375 0.5 0.75",
            "f32[1,2,3] -0.2223243 0.5558108 0.6568673 -0.1678765 0.1199118 0.8993384; -; "
            "-; f32[1,2,3] -1.375 1.375 1.625 -0.875 0.25 1.875",
            1e-5);
}

static void embed_norm(void **state)
{
    (void)state;
    op_eval("EmbedLayerNormalization", "epsilon=0.25",
            "i32[2,2] 0 2 1 1; i32[2,2] 0 1 1 0; f32[3,3] 0.75 -0.625 -1 0.25 -0.625 "
            "0.125 0.875 -0.25 -0.5; f32[2,3] -0.125 0.375 -0.75 -0.25 -0.75 0.375; "
            "f32[2,3] 0.625 -0.25 -0.25 0.125 -0.625 -0.5; f32[3] -0.375 -0.125 -0.875; "
            "f32[3] 0.5 0.125 -0.375; i32[2,2] 1 0 1 1",
            "f32[2,2,3] 0.05958486 0.1323403 0.6012537 0.07171983 0.253484 -0.275068 "
            "0.09910816 0.1717707 0.2330194 0.2027773 0.2806881 -0.771297; i32[2] 1 2; "
            "f32[2,2,3] 1.25 -0.5 -2 0.75 -1.625 -0.625 0.25 -0.875 -1.125 0.625 -1.625 "
            "0.25",
            1e-5);
    op_eval("EmbedLayerNormalization", "epsilon=0.25",
            "i32[2,2] 0 2 1 1; -; f32[3,3] -0.875 0.5 -0.75 -0.75 -0.75 -0.875 0.875 -0.5 "
            "-0.375; f32[4,3] 0.625 0.25 -0.625 -0.125 0.75 -0.25 0.375 -0.75 0.5 0.5 "
            "0.625 0.375; -; f32[3] -0.25 -0.875 0; f32[3] 0.5 -0.625 -0.5; -; i32[1,2] 3 "
            "1",
            "f32[2,2,3] 0.6443375 -1.635363 -0.5 0.2935693 -0.7695015 -0.5 0.4801111 "
            "-0.903445 -0.5 0.57497 -1.464664 -0.5; i32[2] 0 0",
            1e-5);
}

static void other_norms(void **state)
{
    (void)state;
    op_eval("LpNormalization", "p=1 axis=0", "f32[2,3] 0.125 0.5 0.75 -0.75 -0.625 0.625",
            "f32[2,3] 0.1428571 0.4444444 0.5454546 -0.8571429 -0.5555556 0.4545455", 1e-5);
    op_eval("LpNormalization", "", "f32[2,3] 0.125 0.5 0.75 -0.75 -0.625 0.625",
            "f32[2,3] 0.1373606 0.5494422 0.8241634 -0.6469966 -0.5391639 0.5391639", 1e-5);
    op_eval("MeanVarianceNormalization", "", "f32[2,2,2,1] 0.25 0.5 1 0.875 0.625 0.5 -0.25 0.25",
            "f32[2,2,2,1] -1.60591 0.2294157 1.056329 0.8077807 1.147079 0.2294157 "
            "-1.42915 -0.4349588",
            1e-5);
    op_eval("MeanVarianceNormalization", "axes=-1", "f32[2,3] -0.625 0.5 0.5 0.5 -0.125 -0.25",
            "f32[2,3] -1.414214 0.7071068 0.7071068 1.397001 -0.5080005 -0.8890009", 1e-5);
}

static void softmax_extremes(void **state)
{
    (void)state;
    op_eval("Softmax", "", "f32[3,2] 10000 10000 -inf 3 -inf -inf", "f32[3,2] 0.5 0.5 0 1 0 0",
            1e-7);
    op_eval("Softmax", "axis=0", "f32[2,3] 1e30 -inf -inf -1e30 2 -inf", "f32[2,3] 1 0 0 0 1 0",
            1e-7);
    op_eval("Softmax", "", "f32[2,2] nan 1 0 0", "f32[2,2] nan nan 0.5 0.5", 1e-7);
    op_eval("Softmax", "", "f32[2,2] -inf nan 1 inf", "f32[2,2] nan nan nan nan", 0);
    op_eval("Softmax", "axis=0", "f32[2,3] nan -inf 0 1 nan inf",
            "f32[2,3] nan nan nan nan nan nan", 0);
    op_eval("LogSoftmax", "", "f32[2,2] -inf -inf 0 nan", "f32[2,2] nan nan nan nan", 0);
    op_eval("Softmax", "", "f16[1,2] 60000 60000", "f16[1,2] 0.5 0.5", 1e-3);
    op_eval("LogSoftmax", "", "f32[2,2] 10000 10000 -inf 0",
            "f32[2,2] -0.6931472 -0.6931472 -inf 0", 1e-6);
    op_eval("Softmax", "axis=1", "f32[2,0,3]", "f32[2,0,3]", 0);
    op_eval("Softmax", "axis=1", "f64[2,1] 5 -5", "f64[2,1] 1 1", 0);
}

/* Parameters that broadcast over some of the normalised axes, f16, and dimensions of 0. */
static void layer_norm_forms(void **state)
{
    (void)state;
    op_eval("LayerNormalization", "axis=1 epsilon=0", "f32[1,2,2] 1 3 1 3; f32[2,1] 2 10; f32[] 1",
            "f32[1,2,2] -1 3 -9 11; f32[1,1,1] 2; f32[1,1,1] 1", 1e-6);
    op_eval("LayerNormalization", "epsilon=0", "f32[2,2] 1 3 2 4; f32[2,2] 1 2 3 4",
            "f32[2,2] -1 2 -3 4; -; f32[2,1] 1 1", 1e-6);
    op_eval("LayerNormalization", "epsilon=0", "f16[1,2] 1 3; f16[2] 2 2; f16[2] 0 1",
            "f16[1,2] -2 3; f32[1,1] 2; f32[1,1] 1", 1e-3);
    op_eval("RMSNormalization", "epsilon=0", "f16[1,2] 3 4; f32[2] 1 2",
            "f32[1,2] 0.8485281 2.262742; f32[1,1] 0.2828427", 1e-6);
    op_eval("LayerNormalization", "", "f32[0,2]; f32[2] 1 1", "f32[0,2]; f32[0,1]; f32[0,1]", 0);
    op_eval("LayerNormalization", "", "f32[2,0]; f32[0]", "f32[2,0]; f32[2,1] nan nan", 0);
    /* far from zero, where a sum of squares would cancel */
    op_eval("LayerNormalization", "epsilon=0", "f32[1,4] 10000 10001 10002 10003; f32[4] 1 1 1 1",
            "f32[1,4] -1.341641 -0.4472136 0.4472136 1.341641", 1e-6);
}

static void batch_norm_forms(void **state)
{
    (void)state;
    const char *in = "f32[2] 1 3; f32[1] 2; f32[1] 1; f32[1] 2; f32[1] 4";
    op_eval("BatchNormalization", "epsilon=0", in, "f32[2] 0 2", 1e-6);
    op_eval("BatchNormalization", "epsilon=0", in, "f32[2] 0 2; f32[1] 2; f32[1] 4", 1e-6);
    op_eval("BatchNormalization", "epsilon=0",
            "f16[1,1,2] 1 3; f32[1] 2; f32[1] 1; f64[1] 2; f64[1] 4", "f16[1,1,2] 0 2", 1e-3);
    op_eval("BatchNormalization", "", "f32[0,2,3]; f32[2] 1 1; f32[2] 0 0; f32[2] 0 0; f32[2] 1 1",
            "f32[0,2,3]", 0);
}

static void embed_norm_ids(void **state)
{
    (void)state;
    const char *rest = "f32[3,1] 1 1 1; f32[2,1] 1 1; f32[1,1] 1; f32[1] 1; f32[1] 0";
    char in[256];
    snprintf(in, sizeof in, "i32[1,2] 0 3; i32[1,2] 0 0; %s", rest);
    op_eval_fails("EmbedLayerNormalization", "", in, 1, ZC_ERR_INPUT,
                  "word id out of range (got 3, need [-3, 2])");
    snprintf(in, sizeof in, "i32[1,2] 0 1; i32[1,2] 0 -2; %s", rest);
    op_eval_fails("EmbedLayerNormalization", "", in, 1, ZC_ERR_INPUT,
                  "segment id out of range (got -2, need [-1, 0])");
    snprintf(in, sizeof in, "i32[1,3] 0 1 2; i32[1,3] 0 0 0; %s", rest);
    op_eval_fails("EmbedLayerNormalization", "", in, 1, ZC_ERR_INPUT,
                  "position id out of range (got 2, need [-2, 1])");
}

static void symbolic_shapes(void **state)
{
    (void)state;
    op_infer("Softmax", "axis=-2", "f16[n,3]", "f16[n,3]");
    op_infer("LayerNormalization", "axis=-2 stash_type=bf16", "f16[n,s,768]; f16[s,768]",
             "f16[n,s,768]; bf16[n,1,1]; bf16[n,1,1]");
    op_infer("BatchNormalization", "training_mode=1", "f16[n,c,h]; f32[c]; f32[c]; f64[8]; f64[8]",
             "f16[n,c,h]; f64[8]; f64[8]");
    op_infer("SkipLayerNormalization", "", "f16[n,s,8]; f16[s,8]; f16[8]",
             "f16[n,s,8]; f32[n,s,1]; f32[n,s,1]; f16[n,s,8]");
    op_infer("EmbedLayerNormalization", "", "i32[n,s]; -; f16[9,8]; f16[7,8]; -; f16[8]; f16[8]",
             "f16[n,s,8]; i32[n]; f16[n,s,8]");
    op_infer("GroupNormalization", "num_groups=4", "f32[n,c,h]; f32[c]; f32[c]", "f32[n,c,h]");
}

static void bad_models(void **state)
{
    (void)state;
    op_infer_fails("Softmax", "axis=2", "f32[2,3]", 1, "axis out of range (got 2, need [-2, 1])");
    op_infer_fails("Softmax", "axis=-9223372036854775808", "f32[2,3]", 1, "axis out of range");
    op_infer_fails("Softmax", "", "i32[2,3]", 1, "input 0 needs a float type (got i32)");
    op_infer_fails("LpNormalization", "p=3", "f32[2,3]", 1, "p must be 1 or 2 (got 3)");
    op_infer_fails("LayerNormalization", "axis=3", "f32[2,3]; f32[3]", 1, "axis out of range");
    op_infer_fails("LayerNormalization", "stash_type=i32", "f32[2,3]; f32[3]", 1,
                   "stash_type must be f64, f32, f16 or bf16 (got i32)");
    op_infer_fails("LayerNormalization", "", "f32[2,3]; f32[4]", 1,
                   "scale does not broadcast to the input (got [4] and [2,3])");
    op_infer_fails("LayerNormalization", "", "f32[2,3]; f32[3]; f32[1,2,3]", 1,
                   "bias does not broadcast to the input (got [1,2,3] and [2,3])");
    op_infer_fails("BatchNormalization", "", "f32[2,3]; f32[3]; f32[3]; f32[3]; f32[4]", 1,
                   "channels and the length of a channel parameter differ (got 4 and 3)");
    op_infer_fails("BatchNormalization", "training_mode=2",
                   "f32[2,3]; f32[3]; f32[3]; f32[3]; f32[3]", 1,
                   "training_mode must be 0 or 1 (got 2)");
    op_infer_fails("InstanceNormalization", "", "f32[3]; f32[3]; f32[3]", 1,
                   "input 0 has a wrong rank (got 1, need 2 to 16)");
    op_infer_fails("GroupNormalization", "", "f32[1,4]; f32[4]; f32[4]", 1,
                   "num_groups out of range (got 0, need at least 1)");
    op_infer_fails("GroupNormalization", "num_groups=3", "f32[1,4]; f32[4]; f32[4]", 1,
                   "num_groups does not divide the channels (got 3 and 4)");
    op_infer_fails("MsGroupNorm", "groups=2 activation=7", "f32[1,3,4]; f32[4]; f32[4]", 1,
                   "activation must be 0 or 1 (got 7)");
    op_infer_fails("MeanVarianceNormalization", "", "f32[1,3,4]", 1, "axis out of range");
    op_infer_fails("MeanVarianceNormalization", "axes=0,-3", "f32[1,3,4]", 1,
                   "axis 0 is given twice");
    op_infer_fails("SkipLayerNormalization", "", "f32[1,2,4]; f32[1,2,4]; f32[1,1,4]", 1,
                   "input 2 has a wrong rank (got 3, need 1)");
    op_infer_fails("SkipLayerNormalization", "", "f32[1,2,4]; f32[1,3,4]; f32[4]", 1,
                   "skip does not broadcast to the input");
    op_infer_fails("EmbedLayerNormalization", "", "i32[2,3]; i32[2,3]; f32[9,8]", 1,
                   "input 3, the position embedding, is missing");
    op_infer_fails("EmbedLayerNormalization", "",
                   "i32[2,3]; i32[2,3]; f32[9,8]; f32[9,8]; -; f32[8]; f32[8]", 1,
                   "segment ids need a segment embedding");
}

/* ---- fast kernels ---- */

static void fast_kernels(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 15, 31, 32, 33, 1023, 2500};
    for (size_t i = 0; i < ZC_COUNTOF(sizes); i++) {
        int64_t n = sizes[i];
        zc_attrs_Softmax softmax = {.axis = -1};
        zc_attrs_LayerNormalization layer = {.axis = 1, .epsilon = 1e-5f, .stash_type = ZC_F32};
        zc_attrs_RMSNormalization rms = {.axis = -1, .epsilon = 1e-5f, .stash_type = ZC_F32};
        zc_attrs_SkipLayerNormalization skip = {.epsilon = 1e-5f};
        zc_attrs_BatchNormalization batch = {.epsilon = 1e-5f, .momentum = 0.9f};
        zc_attrs_GroupNormalization group = {
            .epsilon = 1e-5f, .num_groups = 1, .stash_type = ZC_F32};
        zc_attrs_InstanceNormalization instance = {.epsilon = 1e-5f};
        zc_tensor in[] = {RANDOM(1, 3, 3, n), RANDOM(2, 1, n), RANDOM(3, 1, n)};
        fast_agrees(ZC_OP_Softmax, &softmax, 1, in, 1, 0, 1e-6);
        softmax.axis = 0;
        fast_agrees(ZC_OP_Softmax, &softmax, 1, in, 1, 0, 1e-6);
        fast_agrees(ZC_OP_LayerNormalization, &layer, 3, in, 3, 0, 1e-4);
        fast_agrees(ZC_OP_RMSNormalization, &rms, 2, in, 2, 0, 1e-5);
        zc_tensor five[] = {in[0], RANDOM(4, 1, n), in[1], in[2], RANDOM(5, 1, n)};
        fast_agrees(ZC_OP_SkipLayerNormalization, &skip, 5, five, 4, 0, 1e-4);
        fast_agrees(ZC_OP_SkipSimplifiedLayerNormalization, &skip, 3, five, 4, 0, 1e-5);
        zc_tensor image[] = {RANDOM(6, 1, 2, 3, n), RANDOM(7, 1, 3), RANDOM(8, 1, 3),
                             RANDOM(9, 1, 3), RANDOM(10, 1, 3)};
        for (int c = 0; c < 3; c++) ((float *)image[4].data)[c] = 0.5f + (float)c;
        fast_agrees(ZC_OP_BatchNormalization, &batch, 5, image, 1, 0, 1e-5);
        fast_agrees(ZC_OP_GroupNormalization, &group, 3, image, 1, 0, 1e-4);
        fast_agrees(ZC_OP_InstanceNormalization, &instance, 3, image, 1, 0, 1e-4);
        zc_attrs_MsGroupNorm last = {.epsilon = 1e-5f, .groups = 3, .channels_last = 1};
        zc_tensor side[] = {RANDOM(11, 1, 2, 5, 3 * n), RANDOM(12, 1, 3 * n), RANDOM(13, 1, 3 * n)};
        fast_agrees(ZC_OP_MsGroupNorm, &last, 3, side, 1, 0, 1e-4);
        free_tensors(side, 3);
        free_tensors(in, 3);
        free(five[1].data);
        free(five[4].data);
        free_tensors(image, 5);
    }
}

/* One number that is not finite at each place of rows of each length, at every level. */
static void softmax_not_finite(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 41 * 41 * 3 * 2; i++) {
        float x[41], y[41], value = values[i % 3], others = i / 3 % 2 ? -INFINITY : 0;
        int n = i / 6 % 41 + 1, at = i / 6 / 41;
        if (at >= n) continue;
        for (int e = 0; e < n; e++) x[e] = e == at ? value : others;
        bool masked = i % 3 == 2 && (others != 0 || n == 1);
        for (int level = 0; level <= (int)zc_simd_level(); level++) {
            zc_rows_at((zc_simd)level)->softmax(x, n, y);
            for (int e = 0; e < n; e++)
                assert_true(i % 3 < 2 ? isnan(y[e]) : masked || e == at ? y[e] == 0 : y[e] > 0);
            zc_rows_at((zc_simd)level)->column_softmax(x, n, 1, 1, y);
            for (int e = 0; e < n; e++)
                assert_true(i % 3 < 2 ? isnan(y[e]) : masked || e == at ? y[e] == 0 : y[e] > 0);
        }
    }
}

/* Every level that this machine has against double arithmetic. */
static void every_level(void **state)
{
    (void)state;
    float x[77], y[77], want[77], gain[77], bias[77];
    for (int i = 0; i < 77; i++) {
        x[i] = 4 * (float)zc_random_normal(1, (uint64_t)i);
        gain[i] = (float)zc_random_normal(2, (uint64_t)i);
        bias[i] = (float)zc_random_normal(3, (uint64_t)i);
    }
    for (int level = 0; level <= (int)zc_simd_level(); level++) {
        const zc_rows *rows = zc_rows_at((zc_simd)level);
        for (int64_t n = 1; n <= 77; n += n < 20 ? 1 : 19) {
            double mean = 0, var = 0, sum = 0, dot = 0, got[2];
            for (int i = 0; i < n; i++) mean += (double)x[i] / (double)n;
            for (int i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
            for (int i = 0; i < n; i++) dot += (double)x[i] * (double)gain[i];
            for (int i = 0; i < n; i++) sum += exp((double)x[i]);
            rows->moments(x, n, false, &got[0], &got[1]);
            assert_true(fabs(got[0] - mean) < 1e-6 && fabs(got[1] - var) < 1e-5 * (1 + var));
            rows->products(x, gain, 1, n, y);
            assert_true(fabs((double)y[0] - dot) < 1e-5 * (double)n);
            rows->softmax(x, n, y);
            for (int i = 0; i < n; i++) assert_true(fabs(y[i] - exp((double)x[i]) / sum) < 1e-6);
            rows->scale(x, n, 0.5f, 2, gain, bias, y);
            for (int i = 0; i < n; i++) want[i] = (x[i] - 0.5f) * 2 * gain[i] + bias[i];
            assert_memory_equal(y, want, (size_t)n * sizeof *y);
            rows->add(x, gain, bias, n, y);
            for (int i = 0; i < n; i++) want[i] = x[i] + gain[i] + bias[i];
            assert_memory_equal(y, want, (size_t)n * sizeof *y);
        }
    }
}

static void exponential(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t bits = 0; bits < 0xff800000u; bits += 4093) {
        float x;
        memcpy(&x, &bits, sizeof x);
        if (isnan(x)) continue;
        double want = exp((double)x), got = (double)zc_vm_exp(x);
        if (x > 88.8f) {
            assert_true(isinf(got));
            continue;
        }
        if (x > 88.7f) continue;
        double ulp = want < 0x1p-126 ? 0x1p-149 : ldexp(1, ilogb(want) - 23);
        worst = fmax(worst, fabs(got - want) / ulp);
    }
    assert_true(worst < 1.0);
    assert_true(zc_vm_exp(-(float)INFINITY) == 0 && isinf(zc_vm_exp((float)INFINITY)));
    assert_true(isnan(zc_vm_exp((float)NAN)) && zc_vm_exp(-0.0f) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax),
        cmocka_unit_test(softmax_extremes),
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(batch_norm_forms),
        cmocka_unit_test(instance_and_group_norm),
        cmocka_unit_test(layer_norm),
        cmocka_unit_test(layer_norm_forms),
        cmocka_unit_test(rms_norm),
        cmocka_unit_test(skip_norm),
        cmocka_unit_test(embed_norm),
        cmocka_unit_test(embed_norm_ids),
        cmocka_unit_test(other_norms),
        cmocka_unit_test(symbolic_shapes),
        cmocka_unit_test(bad_models),
        cmocka_unit_test(fast_kernels),
        cmocka_unit_test(softmax_not_finite),
        cmocka_unit_test(every_level),
        cmocka_unit_test(exponential),
    };
    return cmocka_run_group_tests_name("norm", tests, NULL, NULL);
}
