/* Attention, rotary embeddings, linear attention. Expected numbers come from ONNX Runtime and from
 * onnx's reference evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "cpu/attention_tile.h"
#include "support/op_random.h"
#include "support/op_text.h"

static void onnx_attention(void **state)
{
    (void)state;
    op_eval("Attention", "",
            "f32[1,2,2,2] 0.25 0.75 0.5 -0.5 -0.375 0.75 -1 0.625; f32[1,2,3,2] 0.625 "
            "-0.125 -0.375 -0.5 -0.5 -0.125 0 0.125 1 0.625 0.25 1; f32[1,2,3,1] -0.625 "
            "-0.625 0.25 -0.875 -0.875 0",
            "f32[1,2,2,1] -0.3388648 -0.3873466 -0.5016528 -0.4960799", 1e-5);
    op_eval("Attention", "scale=0.5 q_num_heads=2 kv_num_heads=1",
            "f32[1,2,4] -0.125 0.875 0.25 0 -0 -0.5 -1 -0.625; f32[1,3,2] 0.375 -0.625 "
            "-0.25 -1 0.625 -0.75; f32[1,3,1] -0.5 0.75 0",
            "f32[1,2,2] 0.0575118 0.06549319 0.103422 0.1889119", 1e-5);
    op_eval("Attention", "is_causal=1",
            "f32[1,2,3,2] 0.75 0.25 0.5 -0.875 0.125 0 0.75 -0.25 0.25 -0.875 -0.25 "
            "-0.375; f32[1,2,3,2] -0.75 0.625 -0.25 1 0.125 0.25 0.25 0.375 -0.75 -0.125 "
            "-0.5 -0.25; f32[1,2,3,1] -0.75 0.875 -0.625 0.375 -0.375 0.75",
            "f32[1,2,3,1] -0.75 0.04006335 -0.1633989 0.375 -0.02482288 0.2357674", 1e-5);
    op_eval("Attention", "is_causal=1",
            "f32[1,2,2,2] 0.375 -0.75 0.75 0.875 0.75 0.125 -0.75 -0.625; f32[1,2,2,2] "
            "0.875 0.125 -0.625 0.75 0.25 0.125 -0.25 -0.125; f32[1,2,2,1] -0.5 -0.875 "
            "0.75 -0.125; -; f32[1,2,1,2] 0.125 -0.375 0.5 -1; f32[1,2,1,1] -0.25 -1",
            "f32[1,2,2,1] -0.3708583 -0.5583547 -0.1394999 -0.223809; f32[1,2,3,2] 0.125 "
            "-0.375 0.875 0.125 -0.625 0.75 0.5 -1 0.25 0.125 -0.25 -0.125; f32[1,2,3,1] "
            "-0.25 -0.5 -0.875 -1 0.75 -0.125",
            1e-5);
    op_eval("Attention", "",
            "f32[1,2,2,2] -0.75 0.875 0.375 -0.125 0 0.75 -0.25 0.125; f32[1,2,3,2] 0.375 "
            "-0.25 0 0.5 0.875 -0.75 0.875 -1 0.5 0.625 -0.75 -0.125; f32[1,2,3,1] 0.625 "
            "-1 0.25 0.625 0 0.5; bool[2,3] 1 0 1 0 0 0",
            "f32[1,2,2,1] 0.4899275 0 0.5482535 0", 1e-5);
    op_eval("Attention", "softcap=0.5",
            "f32[1,2,2,2] 0 0 0.75 0.5 0.125 -0.125 0.75 -0.125; f32[1,2,3,2] 0.875 "
            "-0.875 -0.125 0 0.875 -0.5 0.625 0.375 0.375 0.25 1 -0.375; f32[1,2,3,1] "
            "-0.25 -0.625 -0.875 -0.625 0.875 0.625; f32[1,2,2,3] -0.5 -0.625 -0.25 "
            "-0.625 -0.25 0.875 0.125 -0.375 -0.5 0.875 -0.125 1",
            "f32[1,2,2,1] -0.6079486 -0.7469906 0.1226391 0.1821205", 1e-5);
    op_eval("Attention", "",
            "f32[2,2,2,2] -0.75 0.25 -0 0.25 0.375 -0.375 0.875 -0.125 0.25 0.25 -0.625 "
            "-0.875 -0.125 0.5 0.625 0.5; f32[2,2,3,2] -0.75 0.875 0.625 0.75 0 0.875 "
            "-0.875 -1 -1 -0.5 -0.5 -0.625 0.125 -0.875 0.125 -0.625 0.375 -1 -0.375 "
            "0.875 0.125 0.625 0.375 0.25; f32[2,2,3,1] -0.625 0.125 -0.875 0.625 0.875 "
            "0.75 -0.875 -0.375 -0.375 -0.75 0.25 0.625; -; -; -; i64[2] 2 3",
            "f32[2,2,2,1] -0.3845966 -0.2541431 0.7396656 0.7424135 -0.5379977 -0.5520483 "
            "-0.02364507 0.07164314",
            1e-5);
    op_eval("Attention", "is_causal=1",
            "f32[1,2,2,2] -0.375 0.75 0.625 -0.75 0.5 0.75 -0.625 0.125; f32[1,2,4,2] "
            "0.25 0.25 -0.75 0.375 0.25 0.625 0.625 -0.375 0.5 0.75 0.75 -0.625 -1 0.25 "
            "-0.625 0.125; f32[1,2,4,1] 0.875 -0.25 -0.5 -0.125 0.375 -0.75 -0.25 -0.75; "
            "-; -; -; i64[1] 3",
            "f32[1,2,2,1] 0.2201221 0.1300109 -0.01319501 -0.1873788", 1e-5);
    op_eval("Attention", "is_causal=1",
            "f32[1,2,2,2] 0.375 0.625 -0.25 -0.25 0.125 -0.625 -0.5 -0.375; f32[1,2,4,2] "
            "-0.125 -0.875 0.5 0.125 -0.375 -0.875 0.5 -0.75 -0.75 -0.75 -0.875 0.875 "
            "-0.5 -0.375 0.625 0.25; f32[1,2,4,1] -0.625 -0.125 0.75 -0.25 0.375 -0.75 "
            "0.5 0.5; -; -; -; i64[1] 1",
            "f32[1,2,2,1] 0 -0.625 0 0.375", 1e-5);
}

static void ms_rotary(void **state)
{
    (void)state;
    op_eval("MsRotaryEmbedding", "interleaved=0",
            "f32[1,2,2,4] 0.75 0.875 -0.375 0.5 -0.5 -0.75 -0.125 0.25 0.875 -0.75 0.375 "
            "-0 -0.75 1 0.375 -0.75; i64[1,2] 2 0; f32[3,2] 0.75 -0.75 -0.875 -0.375 "
            "0.875 -0.875; f32[3,2] 0.875 0.25 -0.875 0.125 -0.125 0.125",
            "f32[1,2,2,4] 0.609375 -0.828125 -0.421875 -0.328125 -0.265625 0.5 -0.53125 "
            "-0.375 0.8125 0.65625 0.21875 -0.09375 -0.890625 -0.5625 -0.375 0.8125",
            1e-5);
    op_eval("MsRotaryEmbedding", "interleaved=1",
            "f32[1,2,2,4] 0.5 0.375 1 -0.625 0.625 -0.125 0.625 0.75 1 -0.5 -0.125 0.875 "
            "0.875 -0.25 0.875 -0.25; i64[1,2] 2 0; f32[3,2] -0.25 0.5 -0 -0.125 -0.25 "
            "-0.125; f32[3,2] -0.75 -0.875 0.5 0.125 0.375 0.625",
            "f32[1,2,2,4] -0.265625 0.09375 0.265625 0.703125 -0.25 -0.4375 0.96875 "
            "-0.171875 -0.0625 0.5 -0.53125 -0.1875 -0.40625 -0.59375 0.21875 -0.890625",
            1e-5);
    op_eval("MsRotaryEmbedding", "num_heads=2 rotary_embedding_dim=2",
            "f32[1,2,8] -0.5 -0.5 -0.5 -0.375 0.5 -0.25 -0.375 0.25 -0.625 -0.75 0.375 "
            "0.5 -0.375 0.25 -0.875 -0.25; i64[1,2] 1 0; f32[3,1] 0.125 -0.5 -0.25; "
            "f32[3,1] 0.25 0.125 -0.75",
            "f32[1,2,8] 0.3125 0.1875 -0.5 -0.375 -0.21875 0.1875 -0.375 0.25 0.109375 "
            "-0.25 0.375 0.5 -0.109375 -0.0625 -0.875 -0.25",
            1e-5);
    op_eval("MsRotaryEmbedding", "",
            "f32[1,2,4] 0.375 -0.875 1 -0.625 -0.5 -0.625 1 -0.375; i64[1] 1; f32[3,1] "
            "0.25 1 0.875; f32[3,1] -0.875 0 0.25",
            "f32[1,2,4] 0.375 -0.875 1 -0.625 -0.28125 -0.671875 0.96875 -0.078125", 1e-5);
}

static void linear_attention(void **state)
{
    (void)state;
    op_eval("LinearAttention", "update_rule=linear q_num_heads=2 kv_num_heads=1",
            "f32[1,2,4] 0.25 0.75 0.5 -0.5 -0.375 0.75 -1 0.625; f32[1,2,2] 0.625 -0.125 "
            "-0.375 -0.5; f32[1,2,2] -0.5 -0.125 0 0.125",
            "f32[1,2,4] -0.02209709 -0.005524272 -0.1325825 -0.03314563 0.1160097 "
            "0.008286407 0.2485922 0.06767233; f32[1,1,2,2] -0.3125 -0.125 0.0625 "
            "-0.046875",
            1e-5);
    op_eval("LinearAttention", "update_rule=gated q_num_heads=2 kv_num_heads=1",
            "f32[1,2,4] 1 0.625 0.25 1 -0.625 -0.625 0.25 -0.875; f32[1,2,2] -0.875 0 "
            "-0.125 0.875; f32[1,2,2] 0.25 0 -0 -0.5; f32[1,1,2,2] -1 -0.625 0.375 "
            "-0.625; f32[1,2,2] -0.25 -1 0.625 -0.75",
            "f32[1,2,4] -0.6444069 -0.4457978 -0.07879496 -0.2486274 0.7948344 0.6156152 "
            "-0.3697723 0.1881807; f32[1,1,2,2] -1.86367 -0.8468695 0.06516522 -0.5461087",
            1e-5);
    op_eval("LinearAttention", "scale=0.5 update_rule=delta q_num_heads=2 kv_num_heads=2",
            "f32[1,2,4] -0.5 0.75 0 0.75 0.25 0.5 -0.875 0.125; f32[1,2,4] 0 0.75 -0.25 "
            "0.25 -0.875 -0.25 -0.375 -0.75; f32[1,2,4] 0.625 -0.25 1 0.125 0.25 0.25 "
            "0.375 -0.75; -; -; f32[1,2,1] -0.125 -0.5",
            "f32[1,2,4] -0.02197266 0.008789062 -0.01171875 -0.001464844 0.005577087 "
            "0.02784729 -0.03691101 0.04207802; f32[1,2,2,2] 0.1029663 0.1119385 "
            "-0.0291748 0.05541992 0.09936523 -0.1369934 0.1049805 -0.2857056",
            1e-5);
    op_eval("LinearAttention", "update_rule=gated_delta q_num_heads=2 kv_num_heads=2",
            "f32[1,2,4] -0.25 -0.75 0.875 -0.625 0.375 -0.375 0.75 0.375; f32[1,2,4] "
            "-0.75 0.75 0.875 0.75 0.125 -0.75 -0.625 0.875; f32[1,2,4] 0.125 -0.625 0.75 "
            "0.25 0.125 -0.25 -0.125 -0.5; f32[1,2,2,2] -0.875 0.75 -0.125 0.125 -0.375 "
            "0.5 -1 -0.25; f32[1,2,2] -1 -0.75 0.875 0.375; f32[1,2,2] -0.125 0 0.75 "
            "-0.25",
            "f32[1,2,4] 0.07857494 -0.08816184 0.09916028 0.1983206 -0.1583205 0.0642722 "
            "-0.3110909 0.1333309; f32[1,2,2,2] -0.7760879 0.5450066 -0.1790239 0.302621 "
            "-0.2084687 0.32257 -0.7562599 -0.1423178",
            1e-5);
}

static void causal_conv(void **state)
{
    (void)state;
    op_eval("CausalConvWithState", "",
            "f32[1,2,3] 0.125 0.375 -0.25 0 0.5 0.875; f32[2,1,3] -0.75 0.875 -1 0.5 "
            "0.625 -0.75; f32[2] -0.125 0.625",
            "f32[1,2,3] -0.25 -0.390625 0.359375 0.625 0.25 0.28125; f32[1,2,2] 0.375 "
            "-0.25 0.5 0.875",
            1e-5);
    op_eval("CausalConvWithState", "activation=silu",
            "f32[1,2,1] -1 0.25; f32[2,1,3] 0.625 0 0.5 -0.5 -0.625 -0.25; -; f32[1,2,2] "
            "-0.625 -0.25 0.875 0.125",
            "f32[1,2,1] -0.2591548 -0.2077574; f32[1,2,2] -0.25 -1 0.125 0.25", 1e-5);
}

static void rotary(void **state)
{
    (void)state;
    op_eval("RotaryEmbedding", "",
            "f32[1,2,2,4] -0.375 -0.5 0.875 -0.125 1 0 0 0.75 0.5 0.125 -0.125 0.75 "
            "-0.125 0.875 -0.875 -0.125; f32[3,2] 0 0.875 -0.5 0.625 0.375 0.375; "
            "f32[3,2] 0.25 1 -0.375 -0.25 -0.625 -0.875; i64[1,2] 2 0",
            "f32[1,2,2,4] 0.40625 -0.296875 0.5625 0.390625 0 -0.75 0.25 0.65625 0.109375 "
            "0.703125 -0.359375 0.171875 0.21875 0.890625 -0.03125 0.765625",
            1e-5);
    op_eval("RotaryEmbedding", "interleaved=1 num_heads=2 rotary_embedding_dim=2",
            "f32[1,2,8] -0.625 0.875 0.625 -0.75 0.25 -0 0.25 0.375 -0.375 0.875 -0.125 "
            "0.25 0.25 -0.625 -0.875 -0.125; f32[1,2,1] 0.5 0.625; f32[1,2,1] 0.5 -0.75",
            "f32[1,2,8] -0.75 0.125 0.625 -0.75 0.125 0.125 0.25 0.375 0.421875 0.828125 "
            "-0.125 0.25 -0.3125 -0.578125 -0.875 -0.125",
            1e-5);
}

/* One query of size 1 against two keys with scores 0 and ln 3, or 1 and 3 times what they were. */
static void masks(void **state)
{
    (void)state;
    const char *qkv = "f32[1,1,1,1] 1; f32[1,1,2,1] 0 1.0986123; f32[1,1,2,1] 4 8; ";
    static const char *const rows[][2] = {
        {"-", "7"},
        {"bool[1,2] 1 0", "4"},
        {"bool[1,2] 0 0", "0"},
        {"f32[2] 1.0986123 0", "6"},
        {"f32[2] -inf 0", "8"},
        {"f32[1,1,1,2] -inf -inf", "0"},
        {"f32[1] 0", "4"}, /* keys behind a short mask do not count */
        {"i32[2] -1000 0", "8"},
        {"f64[1,2] 0 -1000", "4"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        char in[256], want[64];
        snprintf(in, sizeof in, "%s%s", qkv, rows[i][0]);
        snprintf(want, sizeof want, "f32[1,1,1,1] %s", rows[i][1]);
        op_eval("Attention", "", in, want, 1e-6);
    }
    /* a score that is not finite does not matter where it is masked */
    op_eval("Attention", "",
            "f32[1,1,1,1] inf; f32[1,1,2,1] 1 1; f32[1,1,2,1] 4 8; f32[1,2] -inf -inf",
            "f32[1,1,1,1] 0", 0);
}

/* A key that a query does not see does not count, whatever it holds; what the query sees does. */
static void not_finite(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        /* attributes, query and keys, values and mask, want */
        {"", "nan; f32[1,1,2,1] 0 1", "4 8", "nan"},
        {"", "nan; f32[1,1,2,1] 0 1", "4 8; f32[1,2] -inf -inf", "0"},
        {"", "nan; f32[1,1,2,1] 0 1", "4 8; bool[1,2] 0 1", "nan"},
        {"", "1; f32[1,1,2,1] 0 nan", "4 8", "nan"},
        {"", "1; f32[1,1,2,1] 0 nan", "4 8; f32[1,2] 0 -inf", "4"},
        {"", "1; f32[1,1,2,1] 0 nan", "4 8; bool[1,2] 1 0", "4"},
        {"is_causal=1", "1; f32[1,1,2,1] 0 nan", "4 nan", "4"},
        {"", "1; f32[1,1,2,1] 0 0", "4 nan", "nan"},
        {"", "1; f32[1,1,2,1] 0 0", "4 -inf", "-inf"},
        {"", "1; f32[1,1,2,1] 0 0", "4 nan; f32[1,2] 0 -inf", "4"},
        {"", "1; f32[1,1,2,1] 0 0", "4 inf; bool[1,2] 1 0", "4"},
        {"", "1; f32[1,1,2,1] 0 0", "4 8; f32[1,2] 0 nan", "nan"},
        {"", "1; f32[1,1,2,1] 0 inf", "4 8", "nan"},
        {"", "1; f32[1,1,2,1] 0 -inf", "4 8", "4"},
        {"", "1; f32[1,1,2,1] -inf -inf", "4 8", "0"},
        {"softcap=2", "nan; f32[1,1,2,1] 0 1", "4 8", "nan"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        char in[256], want[64];
        snprintf(in, sizeof in, "f32[1,1,1,1] %s; f32[1,1,2,1] %s", rows[i][1], rows[i][2]);
        snprintf(want, sizeof want, "f32[1,1,1,1] %s", rows[i][3]);
        op_eval("Attention", rows[i][0], in, want, 1e-6);
    }
}

static void score_outputs(void **state)
{
    (void)state;
    const char *in = "f32[1,1,1,1] 1; f32[1,1,2,1] 0 1.0986123; f32[1,1,2,1] 4 8; f32[2] 1 -inf";
    static const char *const rows[][2] = {{"softcap=1 qk_matmul_output_mode=0", "0 1.0986123"},
                                          {"softcap=1 qk_matmul_output_mode=1", "0 0.8"},
                                          {"softcap=1 qk_matmul_output_mode=2", "1 -inf"},
                                          {"softcap=1 qk_matmul_output_mode=3", "1 0"}};
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        char want[128];
        snprintf(want, sizeof want, "f32[1,1,1,1] 4; -; -; f32[1,1,1,2] %s", rows[i][1]);
        op_eval("Attention", rows[i][0], in, want, 1e-6);
    }
}

static void present_without_past(void **state)
{
    (void)state;
    op_eval("Attention", "q_num_heads=2 kv_num_heads=2",
            "f32[1,1,2] 1 1; f32[1,2,2] 1 2 3 4; f32[1,2,2] 5 6 7 8",
            "-; f32[1,2,2,1] 1 3 2 4; f32[1,2,2,1] 5 7 6 8", 0);
    op_eval("Attention", "",
            "f32[1,2,0,3]; f32[1,2,5,3] 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
            "1 1 1 1 1 1; f32[1,2,5,1] 1 1 1 1 1 1 1 1 1 1",
            "f32[1,2,0,1]", 0);
    op_eval("Attention", "", "f32[1,1,1,2] 1 1; f32[1,1,0,2]; f32[1,1,0,3]", "f32[1,1,1,3] 0 0 0",
            0);
    op_eval("Attention", "softmax_precision=f64",
            "f16[1,1,1,1] 1; f16[1,1,2,1] 0 1.0986123; "
            "f16[1,1,2,1] 4 8",
            "f16[1,1,1,1] 7", 2e-3);
}

/* Weights of a third and two thirds; what hides a key has a score of its own. */
static void hidden_keys(void **state)
{
    (void)state;
    const char *qkv = "f32[1,1,1,1] 1; f32[1,1,2,1] 0 0.6931472; f32[1,1,2,1] 4 8; ";
    static const struct {
        const char *attrs, *rest, *want;
    } cases[] = {
        {"", "-", "6.6666667"},
        {"", "-; -; -; i64[1] 1", "4"},
        {"", "-; -; -; i64[1] 0", "0"},
        {"mask_value=-5", "-; -; -; i64[1] 0", "6"},
        {"mask_value=-5", "-; -; -; i64[1] 1", "4"},
        {"", "bool[1,2] 1 0", "4"},
        {"", "bool[1,2] 0 0", "0"},
        {"mask_value=-5", "bool[1,2] 0 0", "6"},
        {"mask_value=0.6931472", "bool[1,2] 1 0", "6.6666667"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char in[256], want[64];
        snprintf(in, sizeof in, "%s%s", qkv, cases[i].rest);
        snprintf(want, sizeof want, "f32[1,1,1,1] %s", cases[i].want);
        op_eval("Attention", cases[i].attrs, in, want, 1e-5);
    }
    op_infer_fails("Attention", "mask_value=-5", "f32[1,1,1,1]; f32[1,1,2,1]; f32[1,1,2,1]", 1,
                   "mask_value needs a mask of type bool, or lengths");
}

static void packed_lengths(void **state)
{
    (void)state;
    const char *x = "f32[2,2,3] 1 0 4 1 0.6931472 8 1 0 4 1 0.6931472 8; -; -; -; -; -; ";
    char in[256];
    snprintf(in, sizeof in, "%si64[2] 1 2", x);
    op_eval("Attention", "q_num_heads=1 kv_num_heads=1", in, "f32[2,2,1] 4 4 6.6666667 6.6666667",
            1e-5);
    op_eval("Attention", "q_num_heads=1 kv_num_heads=1 is_causal=1", in,
            "f32[2,2,1] 4 4 4 6.6666667", 1e-5);
    snprintf(in, sizeof in, "%si32[2] 0 2", x);
    op_eval("Attention", "q_num_heads=1 kv_num_heads=1 mask_value=-5", in,
            "f32[2,2,1] 6 6 6.6666667 6.6666667", 1e-5);
    snprintf(in, sizeof in, "%si64[2] 1 3", x);
    op_eval_fails("Attention", "q_num_heads=1 kv_num_heads=1", in, 1, ZC_ERR_INPUT,
                  "lengths[1] out of range (got 3, need [0, 2])");
}

static void bad_lengths(void **state)
{
    (void)state;
    const char *qkv = "f32[1,1,1,1] 1; f32[1,1,2,1] 0 1; f32[1,1,2,1] 4 8; -; -; -; ";
    char in[256];
    snprintf(in, sizeof in, "%si64[1] 3", qkv);
    op_eval_fails("Attention", "", in, 1, ZC_ERR_INPUT,
                  "lengths[0] out of range (got 3, need [0, 2])");
    snprintf(in, sizeof in, "%si64[1] -1", qkv);
    op_eval_fails("Attention", "", in, 1, ZC_ERR_INPUT, "lengths[0] out of range (got -1");
    op_eval_fails("RotaryEmbedding", "",
                  "f32[1,1,1,2] 1 2; f32[3,1] 1 1 1; f32[3,1] 0 0 0; i64[1,1] 3", 1, ZC_ERR_INPUT,
                  "position out of range (got 3, need [0, 2])");
    op_eval_fails(
        "MsRotaryEmbedding", "",
        "f32[1,1,2,2] 1 2 3 4; i64[1] 9223372036854775807; f32[3,1] 1 1 1; f32[3,1] 0 0 0", 1,
        ZC_ERR_INPUT, "position out of range");
    const char *gqa =
        "f32[1,1,8] 1 1 1 1 1 1 1 1; f32[1,1,8] 1 1 1 1 1 1 1 1; f32[1,1,8] 1 1 1 1 1 1 "
        "1 1; -; f32[1,1,1,8] 1 1 1 1 1 1 1 1; f32[1,1,1,8] 1 1 1 1 1 1 1 1; ";
    snprintf(in, sizeof in, "%si32[1] 2; -; -; -; -; -; -; -; -; i32[] 2", gqa);
    op_eval_fails(
        "Attention", "q_num_heads=1 kv_num_heads=1", in, 1, ZC_ERR_INPUT,
        "seqlens_k[0] does not fit the other lengths (got 2 with 1 new, 1 past and 2 total");
}

static void symbolic_shapes(void **state)
{
    (void)state;
    op_infer("Attention", "",
             "f16[n,12,s,64]; f16[n,4,s,64]; f16[n,4,s,32]; bool[s,p+s]; "
             "f16[n,4,p,64]; f16[n,4,p,32]",
             "f16[n,12,s,32]; f16[n,4,p+s,64]; f16[n,4,p+s,32]; f16[n,12,s,p+s]");
    op_infer("Attention", "q_num_heads=4 kv_num_heads=2", "f32[n,s,256]; f32[n,t,128]; f32[n,t,64]",
             "f32[n,s,128]; f32[n,2,t,64]; f32[n,2,t,32]; f32[n,4,s,t]");
    op_infer("Attention", "q_num_heads=4 kv_num_heads=4", "f32[n,s,16]; f32[n,t,16]; f32[n,t,8]",
             "f32[n,s,8]; f32[n,4,t,4]; f32[n,4,t,2]; f32[n,4,s,t]");
    op_infer(
        "Attention", "q_num_heads=4 kv_num_heads=2",
        "f16[n,s,64]; f16[n,s,32]; f16[n,s,32]; -; f16[n,2,p,16]; f16[n,2,p,16]; i32[n]; -; -; -; "
        "-; -; -; -; -; i32[] = t",
        "f16[n,s,64]; f16[n,2,max(p,t),16]; f16[n,2,max(p,t),16]");
    op_infer("LinearAttention", "update_rule=linear q_num_heads=4 kv_num_heads=2",
             "f16[n,s,64]; f16[n,s,32]; f16[n,s,8]; f32[n,2,16,4]", "f16[n,s,16]; f32[n,2,16,4]");
    op_infer("CausalConvWithState", "", "f32[n,c,s]; f32[c,1,4]", "f32[n,c,s]; f32[n,c,3]");
    op_infer("RotaryEmbedding", "num_heads=2", "f32[n,s,8]; f32[m,2]; f32[m,2]; i64[n,s]",
             "f32[n,s,8]");
}

static void bad_models(void **state)
{
    (void)state;
    const char *in4 = "f32[1,4,2,8]; f32[1,2,3,8]; f32[1,2,3,8]";
    op_infer_fails("Attention", "", "f32[2,8]; f32[2,8]; f32[2,8]", 1,
                   "input 0 has a wrong rank (got 2, need 3 to 5)");
    op_infer_fails("Attention", "", "f32[1,2,8]; f32[1,2,8]; f32[1,2,8]", 1,
                   "q_num_heads out of range (got 0, need [1, 2147483647])");
    op_infer_fails("Attention", "q_num_heads=3 kv_num_heads=2",
                   "f32[1,2,8]; f32[1,2,8]; f32[1,2,8]", 1,
                   "query size is not a multiple of the heads (got 8 and 3)");
    op_infer_fails("Attention", "", "f32[1,3,2,8]; f32[1,2,3,8]; f32[1,2,3,8]", 1,
                   "query heads are not a multiple of key heads (got 3 and 2)");
    op_infer_fails("Attention", "", "f32[1,4,2,8]; f32[1,2,3,4]; f32[1,2,3,8]", 1,
                   "head sizes of query and key differ (got 8 and 4)");
    op_infer_fails("Attention", "", "f32[1,4,2,8]; f32[1,2,3,8]; f32[1,2,4,8]", 1,
                   "lengths of key and value differ (got 3 and 4)");
    op_infer_fails("Attention", "qk_matmul_output_mode=4", in4, 1,
                   "qk_matmul_output_mode out of range (got 4, need [0, 3])");
    op_infer_fails("Attention", "softmax_precision=i32", in4, 1,
                   "softmax_precision must be a float type (got i32)");
    op_infer_fails("Attention", "", "f32[1,4,2,8]; f32[1,2,3,8]; f32[1,2,3,8]; bool[2,4]", 1,
                   "attn_mask does not broadcast to the scores (got [2,4] and [1,4,2,3])");
    op_infer_fails("Attention", "", "f32[1,4,2,8]; f32[1,2,3,8]; f32[1,2,3,8]; -; f32[1,2,5,8]", 1,
                   "past_key and past_value come together or not at all");
    op_infer_fails("Attention", "",
                   "f32[1,4,2,8]; f32[1,2,3,8]; f32[1,2,3,8]; -; f32[1,2,5,8]; f32[1,2,6,8]", 1,
                   "past_value has a wrong shape (got [1,2,6,8], need [1,2,5,8])");
    op_infer_fails("RotaryEmbedding", "", "f32[1,2,3,5]; f32[9,2]; f32[9,2]; i64[1,3]", 1,
                   "head size must be even (got 5)");
    op_infer_fails("RotaryEmbedding", "rotary_embedding_dim=6", "f32[1,2,3,4]; f32[9,2]; f32[9,2]",
                   1, "rotary_embedding_dim must be even and at most the head size (got 6)");
    op_infer_fails("RotaryEmbedding", "", "f32[1,2,3,4]; f32[1,3,2]; f32[1,3,3]", 1,
                   "sin_cache has a wrong shape (got [1,3,3], need [1,3,2])");
    op_infer_fails("LinearAttention", "update_rule=gated q_num_heads=1 kv_num_heads=1",
                   "f32[1,2,4]; f32[1,2,4]; f32[1,2,4]", 2,
                   "update_rule gated needs the input decay");
    op_infer_fails("LinearAttention", "update_rule=foo q_num_heads=1 kv_num_heads=1",
                   "f32[1,2,4]; f32[1,2,4]; f32[1,2,4]", 2,
                   "update_rule must be linear, gated, delta");
    op_infer_fails("CausalConvWithState", "activation=relu", "f32[1,2,4]; f32[2,1,3]", 2,
                   "activation must be none, silu or swish (got \"relu\")");
    op_infer_fails("CausalConvWithState", "", "f32[1,2,4]; f32[3,1,3]", 2,
                   "weight has a wrong shape (got [3,1,3], need [2,1,3])");
}

/* ---- consistency ---- */

/* Rotation inside GroupQueryAttention is that of RotaryEmbedding before it. */
static void gqa_rotates(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_attrs_Attention gqa;
    zc_attrs_MsRotaryEmbedding rotary;
    zc_attrs_default(zc_op_get(ZC_OP_Attention), &gqa);
    zc_attrs_default(zc_op_get(ZC_OP_MsRotaryEmbedding), &rotary);
    gqa.q_num_heads = 4;
    gqa.kv_num_heads = 2;
    gqa.is_causal = 1;
    int32_t last = 5, total = 6;
    int64_t first = 3;
    zc_tensor cos = RANDOM(6, 1, 9, 3), sin = RANDOM(7, 1, 9, 3);
    zc_tensor in[ZC_IN_Attention_COUNT] = {
        [ZC_IN_Attention_q] = RANDOM(1, 1, 1, 3, 32),
        [ZC_IN_Attention_k] = RANDOM(2, 1, 1, 3, 16),
        [ZC_IN_Attention_v] = RANDOM(3, 1, 1, 3, 16),
        [ZC_IN_Attention_past_k] = RANDOM(4, 1, 1, 2, 3, 8),
        [ZC_IN_Attention_past_v] = RANDOM(5, 1, 1, 2, 3, 8),
        [ZC_IN_Attention_lengths] = {ZC_I32, 1, {1}, &last},
        [ZC_IN_Attention_total] = {ZC_I32, 0, {0}, &total},
    };
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        zc_tensor inside = {.dtype = ZC_F32}, before = inside, turned[ZC_IN_Attention_COUNT];
        rotary.interleaved = gqa.interleaved = interleaved;
        rotary.rotary_embedding_dim = 6;
        in[ZC_IN_Attention_cos] = cos;
        in[ZC_IN_Attention_sin] = sin;
        expect_ok(diag, zc_cpu_eval(ZC_OP_Attention, &gqa, ZC_IN_Attention_COUNT, in, 1, &inside,
                                    false, "node", diag));
        memcpy(turned, in, sizeof turned);
        turned[ZC_IN_Attention_cos] = turned[ZC_IN_Attention_sin] = (zc_tensor){0};
        for (int i = 0; i < 2; i++) {
            zc_tensor args[] = {in[i], {ZC_I64, 1, {1}, &first}, cos, sin};
            rotary.num_heads = i ? 2 : 4;
            turned[i] = (zc_tensor){.dtype = ZC_F32};
            expect_ok(diag, zc_cpu_eval(ZC_OP_MsRotaryEmbedding, &rotary, 4, args, 1, &turned[i],
                                        false, "node", diag));
        }
        expect_ok(diag, zc_cpu_eval(ZC_OP_Attention, &gqa, ZC_IN_Attention_COUNT, turned, 1,
                                    &before, false, "node", diag));
        assert_memory_equal(inside.data, before.data, 96 * sizeof(float));
        free(inside.data);
        free(before.data);
        free_tensors(turned, 2);
    }
    free_tensors(in, 3);
    free_tensors(in + ZC_IN_Attention_past_k, 2);
    free(cos.data);
    free(sin.data);
    zc_diag_destroy(&diag);
}

/* ---- the fused kernel ---- */

typedef struct shape {
    int64_t batch, heads, kv_heads, nq, nk, d, dv;
    bool causal;
    int64_t window;
    double softcap;
    int bias; /* 0 none, 1 f32, 2 bool, 3 f32 for each head and one that covers a part of the keys
               */
    bool sink;
} shape;

static const shape shapes[] = {
    {1, 2, 2, 1, 1, 1, 1, false, 0, 0, 0, false},
    {2, 3, 3, 5, 7, 8, 16, true, 0, 0, 1, false},
    {1, 2, 1, 33, 31, 17, 19, false, 0, 1.5, 2, false},
    {1, 4, 2, 40, 300, 64, 64, true, 0, 0, 0, true},
    {1, 6, 2, 1, 520, 40, 33, true, 0, 0, 3, false},
    {1, 2, 2, 70, 600, 16, 32, false, 50, 0, 1, false},
    {2, 1, 1, 257, 257, 32, 48, true, 0, 0, 0, false},
    {1, 1, 1, 9, 513, 5, 3, false, 0, 30, 3, true},
};

typedef struct problem {
    zc_attn a;
    zc_tensor q, k, v, bias, mask, sink;
    int64_t keys[2], position[2];
} problem;

static void open_problem(const shape *s, problem *p)
{
    memset(p, 0, sizeof *p);
    p->q = RANDOM(1, 1, s->batch, s->heads, s->nq, s->d);
    p->k = RANDOM(2, 1, s->batch, s->kv_heads, s->nk, s->d);
    p->v = RANDOM(3, 1, s->batch, s->kv_heads, s->nk, s->dv);
    p->bias = RANDOM(4, 1, s->heads, s->nq, s->nk);
    p->mask = RANDOM(5, 1, s->nq, s->nk);
    p->sink = RANDOM(6, 1, s->heads);
    for (int64_t i = 0; i < s->heads * s->nq * s->nk; i += 5)
        ((float *)p->bias.data)[i] = -(float)INFINITY;
    for (int64_t i = 0; i < s->nq * s->nk; i++)
        ((uint8_t *)p->mask.data)[i] = i / s->nk != 2 && zc_random_bits(9, (uint64_t)i) % 3 != 0;
    p->mask.dtype = ZC_BOOL;
    for (int64_t b = 0; b < s->batch; b++) {
        p->keys[b] = s->nk - b * (s->nk / 3);
        p->position[b] = p->keys[b] - s->nq;
    }
    p->a = (zc_attn){.batch = s->batch,
                     .heads = s->heads,
                     .kv_heads = s->kv_heads,
                     .nq = s->nq,
                     .nk = s->nk,
                     .d = s->d,
                     .dv = s->dv,
                     .q = zc_heads_4d(&p->q, s->heads, s->nq, s->d),
                     .k = zc_heads_4d(&p->k, s->kv_heads, s->nk, s->d),
                     .v = zc_heads_4d(&p->v, s->kv_heads, s->nk, s->dv),
                     .y_at = zc_heads_3d(NULL, s->heads, s->nq, s->dv),
                     .scale = 0.3,
                     .softcap = s->softcap,
                     .causal = s->causal,
                     .window = s->window,
                     .keys = p->keys,
                     .position = p->position,
                     .sink = s->sink ? &p->sink : NULL};
    int64_t row = s->nk, head = s->nq * row;
    if (s->bias & 1) p->a.bias[0] = (zc_attn_bias){&p->bias, {0, head, row, 1}, s->nk};
    if (s->bias & 2)
        p->a.bias[1] = (zc_attn_bias){&p->mask, {0, 0, row, 1}, s->bias == 3 ? s->nk / 2 : s->nk};
}

static void close_problem(problem *p)
{
    zc_tensor all[] = {p->q, p->k, p->v, p->bias, p->mask, p->sink};
    free_tensors(all, 6);
}

/* The result at a level with some threads, or the reference's with level -1. */
static float *solve(const problem *p, int level, int threads)
{
    zc_scratch scratch = {0};
    zc_pool *pool = NULL;
    zc_diag *diag = zc_diag_create();
    if (threads > 1) expect_ok(diag, zc_pool_create(threads, &pool, diag));
    zc_kctx k = {.scratch = &scratch, .pool = pool, .subject = "node", .diag = diag};
    int64_t dims[] = {p->a.batch, p->a.nq, p->a.heads, p->a.dv};
    zc_tensor y = random_f32(7, 1, 4, dims);
    zc_attn a = p->a;
    a.y = &y;
    a.y_at.t = &y;
    if (level >= 0) assert_true(zc_attn_fast_fits(&a));
    expect_ok(diag,
              level < 0 ? zc_attn_run(&k, &a, false) : zc_attn_fast_at(&k, &a, (zc_simd)level));
    zc_pool_destroy(&pool);
    zc_scratch_fini(&scratch);
    zc_diag_destroy(&diag);
    return y.data;
}

static void fused_kernel(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(shapes); i++) {
        const shape *s = &shapes[i];
        problem p;
        open_problem(s, &p);
        size_t n = (size_t)(s->batch * s->nq * s->heads * s->dv);
        float *want = solve(&p, -1, 1);
        for (int level = 0; level <= (int)zc_simd_level(); level++) {
            float *one = solve(&p, level, 1), *three = solve(&p, level, 3);
            for (size_t e = 0; e < n; e++)
                if (!(fabsf(one[e] - want[e]) <= 2e-5f * (1 + fabsf(want[e]))))
                    fail_msg("shape %zu level %d element %zu: %.9g, need %.9g", i, level, e, one[e],
                             want[e]);
            assert_memory_equal(one, three, n * sizeof *one);
            free(one);
            free(three);
        }
        free(want);
        close_problem(&p);
    }
}

static int class_of(float x)
{
    return isnan(x) ? 2 : isinf(x) ? (x > 0 ? 1 : -1) : 0;
}

/* The reference and every level have NaN and infinity at the same places. */
static void same_places(const problem *p, size_t n, const char *what)
{
    float *want = solve(p, -1, 1);
    for (int level = 0; level <= (int)zc_simd_level(); level++) {
        float *got = solve(p, level, 1);
        for (size_t e = 0; e < n; e++)
            if (class_of(got[e]) != class_of(want[e]) ||
                (class_of(want[e]) == 0 && fabsf(got[e] - want[e]) > 1e-4f * (1 + fabsf(want[e]))))
                fail_msg("%s, level %d, element %zu: %g, need %g", what, level, e, got[e], want[e]);
        free(got);
    }
    free(want);
}

/* NaN and infinity at the beginning, the middle and the end of every operand. */
static void fused_kernel_not_finite(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < ZC_COUNTOF(shapes); i++) {
        const shape *s = &shapes[i];
        problem p;
        open_problem(s, &p);
        zc_tensor *operands[] = {&p.q, &p.k, &p.v, &p.bias, &p.sink};
        int step = s->nq * s->nk > 4000 ? 7 : 1; /* the reference is slow */
        for (int at = 0; at < (int)ZC_COUNTOF(operands) * 9; at += step) {
            char what[64];
            zc_tensor *t = operands[at / 9];
            float *x = (float *)t->data + (zc_tensor_numel(t) - 1) * (at % 3) / 2, was = *x;
            snprintf(what, sizeof what, "shape %zu, operand %d, place %d: %g", i, at / 9, at % 3,
                     values[at / 3 % 3]);
            *x = values[at / 3 % 3];
            same_places(&p, (size_t)(s->batch * s->nq * s->heads * s->dv), what);
            *x = was;
        }
        close_problem(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_attention),
        cmocka_unit_test(ms_rotary),
        cmocka_unit_test(linear_attention),
        cmocka_unit_test(causal_conv),
        cmocka_unit_test(rotary),
        cmocka_unit_test(masks),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(score_outputs),
        cmocka_unit_test(present_without_past),
        cmocka_unit_test(hidden_keys),
        cmocka_unit_test(packed_lengths),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(symbolic_shapes),
        cmocka_unit_test(bad_models),
        cmocka_unit_test(gqa_rotates),
        cmocka_unit_test(fused_kernel),
        cmocka_unit_test(fused_kernel_not_finite),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
