/* Attention: ONNX's, and com.microsoft's operators, which become the same. */
#include <string.h>

#include "import/quant.h"
#include "import/steps.h"

/* Attention has operands that ONNX's does not. */
zc_status zc_step_attention(zc_imp *im, zc_inode *n)
{
    return zc_imp_need_inputs(im, n, 3, 7);
}

/* ---- what com.microsoft's have in common ---- */

#define AT(input) ZC_IN_Attention_##input

static zc_status refuse(zc_imp *im, zc_inode *n, const char *what)
{
    return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "%s with %s", n->op_type, what);
}

static zc_status heads_of(zc_imp *im, zc_inode *n, const char *name, int64_t *heads)
{
    *heads = zc_imp_take_int(im, n, name, 0);
    if (im->status != ZC_OK || (*heads >= 1 && *heads <= INT32_MAX)) return im->status;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s out of range (got %lld, need [1, %d])", name,
                       (long long)*heads, INT32_MAX);
}

static zc_status need(zc_imp *im, zc_inode *n, int i, const char *what)
{
    if (zc_imp_in(n, i)) return ZC_OK;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "input %d, the %s, is missing", i, what);
}

/* The node, with the attributes that all have. */
static zc_nid attention(zc_imp *im, zc_inode *n, const zc_vid *in, int nout, int64_t heads,
                        int64_t kv_heads)
{
    int nin = ZC_IN_Attention_COUNT;
    float scale = (float)zc_imp_take_float(im, n, "scale", 0);
    while (nin > 1 && !in[nin - 1]) nin--;
    zc_nid id = zc_imp_node(im, n, ZC_OP_Attention, nin, in, nout < 1 ? 1 : nout);
    ZC_IMP_SET(im, Attention, id, q_num_heads, heads);
    ZC_IMP_SET(im, Attention, id, kv_num_heads, kv_heads);
    if (scale != 0) ZC_IMP_SET(im, Attention, id, scale, scale);
    return id;
}

/* The same where no heads share keys. */
static zc_nid plain_attention(zc_imp *im, zc_inode *n, const zc_vid *in, int nout, int64_t heads)
{
    float filter = (float)zc_imp_take_float(im, n, "mask_filter_value", -10000.0f);
    zc_nid id = attention(im, n, in, nout, heads, heads);
    if (in[AT(hidden)]) ZC_IMP_SET(im, Attention, id, mask_filter, filter);
    return id;
}

/* Of several queries a sequence. */
static void maybe_causal(zc_imp *im, zc_inode *n, zc_nid id)
{
    if (zc_imp_take_int(im, n, "unidirectional", 0)) ZC_IMP_SET(im, Attention, id, is_causal, 1);
}

/* ---- Attention ---- */

/* Into queries, keys and values, where their sizes are given and not the same: *split. */
static zc_status hidden_sizes(zc_imp *im, zc_inode *n, zc_ints *sizes, bool *split)
{
    *split = false;
    if (!zc_imp_take_ints(im, n, "qkv_hidden_sizes", sizes) || !sizes->n) return im->status;
    if (sizes->n != 3)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "qkv_hidden_sizes has a wrong length (got %d, need 3)", sizes->n);
    for (int i = 0; i < 3; i++)
        if (sizes->v[i] < 1 || sizes->v[i] > INT32_MAX || (i == 1 && sizes->v[1] != sizes->v[0]))
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "qkv_hidden_sizes[%d] is wrong (got %lld)", i,
                               (long long)sizes->v[i]);
    *split = sizes->v[2] != sizes->v[0];
    return ZC_OK;
}

/* x w + bias, in the operand of queries, or in three. */
static zc_status project(zc_imp *im, zc_inode *n, zc_vid *in)
{
    zc_ints sizes = {0};
    bool apart;
    ZC_TRY(hidden_sizes(im, n, &sizes, &apart));
    zc_vid of[] = {n->in[0], n->in[1], zc_imp_in(n, 2)};
    in[AT(q)] = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Linear, of[2] ? 3 : 2, of, 1));
    if (!apart || im->status != ZC_OK) return im->status;
    zc_vid parts[] = {in[AT(q)], zc_imp_ints(im, sizes.v, 3, 1)};
    zc_nid split = zc_imp_node(im, n, ZC_OP_Split, 2, parts, 3);
    ZC_IMP_SET(im, Split, split, axis, -1);
    if (!zc_imp_done(im, n, split)) return im->status;
    for (int i = 0; i < 3; i++) in[AT(q) + i] = zc_node_at(im->g, split)->out[i];
    return ZC_OK;
}

/* past holds keys, then values. */
static void past_parts(zc_imp *im, zc_inode *n, zc_vid past, zc_vid *in)
{
    const int64_t axis = 0;
    if (!past) return;
    zc_nid split = zc_imp_node(im, n, ZC_OP_Split, 1, &past, 2);
    ZC_IMP_SET(im, Split, split, axis, 0);
    ZC_IMP_SET(im, Split, split, num_outputs, 2);
    if (!zc_imp_done(im, n, split)) return;
    for (int i = 0; i < 2; i++)
        in[AT(past_k) + i] = zc_imp_op2(im, n, ZC_OP_Squeeze, zc_node_at(im->g, split)->out[i],
                                        zc_imp_ints(im, &axis, 1, 1));
}

/* y, and present keys and values, which become one result. */
static zc_status finish_present(zc_imp *im, zc_inode *n, zc_nid id)
{
    const int64_t axis = 0;
    zc_vid parts[2];
    for (int i = 1; id && i < 3; i++)
        if (!zc_graph_out(im->g, id, i, NULL)) return zc_imp_nomem(im, "values");
    ZC_TRY(zc_imp_finish_first(im, n, id, 2));
    for (int i = 0; i < 2; i++)
        parts[i] = zc_imp_op2(im, n, ZC_OP_Unsqueeze, zc_node_at(im->g, id)->out[1 + i],
                              zc_imp_ints(im, &axis, 1, 1));
    zc_nid both = zc_imp_node(im, n, ZC_OP_Concat, 2, parts, 1);
    ZC_IMP_SET(im, Concat, both, axis, 0);
    zc_vid present = zc_imp_done(im, n, both);
    return im->status == ZC_OK ? zc_imp_bind(im, n, 1, present) : im->status;
}

static zc_status refuse_projected(zc_imp *im, zc_inode *n)
{
    if (zc_imp_take_int(im, n, "do_rotary", 0)) return refuse(im, n, "do_rotary");
    if (zc_imp_take_int(im, n, "past_present_share_buffer", 0))
        return refuse(im, n, "past_present_share_buffer");
    return im->status;
}

/* Attention of what was projected, with keys and values in one past. */
static zc_status finish_projected(zc_imp *im, zc_inode *n, zc_vid *in, zc_vid past)
{
    int64_t heads;
    ZC_TRY(heads_of(im, n, "num_heads", &heads));
    past_parts(im, n, past, in);
    bool present = n->nout > 1 && *n->out[1];
    zc_nid id = plain_attention(im, n, in, present ? 3 : 1, heads);
    maybe_causal(im, n, id);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return present ? finish_present(im, n, id) : zc_imp_finish(im, n, id);
}

zc_status zc_step_ms_attention(zc_imp *im, zc_inode *n)
{
    enum { X, W, BIAS, MASK, PAST, ADD };
    zc_vid in[ZC_IN_Attention_COUNT] = {[AT(hidden)] = zc_imp_in(n, MASK),
                                        [AT(bias)] = zc_imp_in(n, ADD)};
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 7));
    ZC_TRY(refuse_projected(im, n));
    zc_imp_take_int(im, n, "rotary_embedding_dim", 0);
    ZC_TRY(project(im, n, in));
    return finish_projected(im, n, in, zc_imp_in(n, PAST));
}

/* The projection is of integers. */
zc_status zc_step_ms_qattention(zc_imp *im, zc_inode *n)
{
    enum { X, W, BIAS, X_SCALE, W_SCALE, MASK, X_ZERO, W_ZERO, PAST };
    zc_vid in[ZC_IN_Attention_COUNT] = {[AT(hidden)] = zc_imp_in(n, MASK)};
    ZC_TRY(zc_imp_need_inputs(im, n, 5, 9));
    ZC_TRY(refuse_projected(im, n));
    const zc_vid factors[] = {n->in[X], n->in[W], zc_imp_in(n, X_ZERO), zc_imp_in(n, W_ZERO)};
    in[AT(q)] = zc_imp_done(
        im, n, zc_quant_product(im, n, factors, n->in[X_SCALE], n->in[W_SCALE], n->in[BIAS]));
    return finish_projected(im, n, in, zc_imp_in(n, PAST));
}

/* ---- MultiHeadAttention ---- */

/* `times` the width of q[batch, length, width], known or not. */
static zc_vid widths_of(zc_imp *im, zc_inode *n, zc_vid q, int64_t times)
{
    zc_dim width = zc_val(im->g, q)->type.dims[2];
    int64_t known = 0;
    if (zc_dim_is_const(width) && !zc_mul_i64(width.k, times, &known)) {
        zc_imp_fail(im, n, ZC_ERR_LIMIT, "the query is too wide (got %lld)", (long long)width.k);
        return 0;
    }
    if (times == 0 || zc_dim_is_const(width)) return zc_imp_ints(im, &known, 1, 1);
    return zc_imp_op2(im, n, ZC_OP_Mul, zc_imp_sizes(im, n, q, 2, 3),
                      zc_imp_ints(im, &times, 1, 1));
}

/* The bias from `from` widths of q on, up to `to` (0: all that is left). */
static zc_vid part_of(zc_imp *im, zc_inode *n, zc_vid bias, zc_vid q, int64_t from, int64_t to)
{
    const int64_t all = INT64_MAX;
    const zc_vid begin = widths_of(im, n, q, from);
    const zc_vid end = to ? widths_of(im, n, q, to) : zc_imp_ints(im, &all, 1, 1);
    return zc_imp_slice(im, n, bias, begin, end, 0);
}

/* x[batch, length, heads, parts, size] + bias[parts * heads * size] */
static zc_vid add_packed(zc_imp *im, zc_inode *n, zc_vid x, zc_vid bias, int64_t parts,
                         int64_t heads)
{
    const int64_t sizes[] = {parts, heads, -1}, perm[] = {1, 0, 2};
    bias = zc_imp_reshape(im, n, bias, sizes, 3);
    return zc_imp_op2(im, n, ZC_OP_Add, x,
                      zc_imp_done(im, n, zc_imp_transpose(im, n, bias, perm, 3)));
}

/* The bias of queries, keys and values; keys that stand [batch, heads, length, size] have theirs.
 */
static zc_status add_biases(zc_imp *im, zc_inode *n, zc_vid bias, int64_t heads, zc_vid *in)
{
    if (!bias || im->status != ZC_OK) return im->status;
    zc_vid q = in[AT(q)];
    if (!in[AT(k)]) {
        in[AT(q)] = add_packed(im, n, q, bias, 3, heads);
        return im->status;
    }
    if (zc_imp_rank(im, q) != 3)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "bad rank of the query (got %d, need 3)",
                           zc_imp_rank(im, q));
    int rank = zc_imp_rank(im, in[AT(k)]);
    in[AT(q)] = zc_imp_op2(im, n, ZC_OP_Add, q, part_of(im, n, bias, q, 0, 1));
    if (rank == 4) return im->status;
    if (rank == 5) {
        in[AT(k)] = add_packed(im, n, in[AT(k)], part_of(im, n, bias, q, 1, 0), 2, heads);
        return im->status;
    }
    in[AT(k)] = zc_imp_op2(im, n, ZC_OP_Add, in[AT(k)], part_of(im, n, bias, q, 1, 2));
    if (in[AT(v)])
        in[AT(v)] = zc_imp_op2(im, n, ZC_OP_Add, in[AT(v)], part_of(im, n, bias, q, 2, 0));
    return im->status;
}

zc_status zc_step_ms_multi_head_attention(zc_imp *im, zc_inode *n)
{
    enum { Q, K, V, BIAS, MASK, ADD, PAST_K, PAST_V, PAST_LENGTH, BEAMS };
    int64_t heads;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 10));
    if (zc_imp_in(n, PAST_LENGTH) || zc_imp_in(n, BEAMS))
        return refuse(im, n, "a shared past buffer");
    zc_vid in[ZC_IN_Attention_COUNT] = {
        [AT(q)] = n->in[Q],
        [AT(k)] = zc_imp_in(n, K),
        [AT(v)] = zc_imp_in(n, V),
        [AT(past_k)] = zc_imp_in(n, PAST_K),
        [AT(past_v)] = zc_imp_in(n, PAST_V),
        [AT(bias)] = zc_imp_in(n, ADD),
        [AT(hidden)] = zc_imp_in(n, MASK),
    };
    ZC_TRY(heads_of(im, n, "num_heads", &heads));
    ZC_TRY(add_biases(im, n, zc_imp_in(n, BIAS), heads, in));
    zc_nid id = plain_attention(im, n, in, n->nout, heads);
    maybe_causal(im, n, id);
    if (n->nout > 3) ZC_IMP_SET(im, Attention, id, qk_matmul_output_mode, 2);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return zc_imp_finish(im, n, id);
}

/* ---- DecoderMaskedMultiHeadAttention: one query, past keys and values in buffers ---- */

enum { ONE_Q, ONE_K, ONE_V, ONE_MASK, ONE_ADD, BUFFER_K, BUFFER_V, FILLED, BEAM_WIDTH, BEAMS };
enum { ONE_BIAS = BEAMS + 1 };

static zc_vid until(zc_imp *im, zc_inode *n, zc_vid v, zc_vid end)
{
    const int64_t from = 0;
    return zc_imp_slice(im, n, v, zc_imp_ints(im, &from, 1, 1), end, 2);
}

/* Which row of the batch each element of beams[batch, beams, length] speaks of, as
 * [batch * beams, 1, length, 1]. */
static zc_vid rows_of(zc_imp *im, zc_inode *n, zc_vid beams)
{
    static const int64_t behind[] = {1, 2}, around[] = {1, 3};
    const zc_vid sizes = zc_imp_op1(im, n, ZC_OP_Shape, beams);
    const zc_vid zero = zc_imp_scalar(im, ZC_I64, 0), one = zc_imp_scalar(im, ZC_I64, 1);
    const zc_vid batch[] = {zero, zc_imp_op2(im, n, ZC_OP_Gather, sizes, zero), one};
    zc_vid row = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Range, 3, batch, 1));
    row = zc_imp_op2(im, n, ZC_OP_Mul, row, zc_imp_op2(im, n, ZC_OP_Gather, sizes, one));
    row = zc_imp_op2(im, n, ZC_OP_Unsqueeze, row, zc_imp_ints(im, behind, 2, 1));
    row = zc_imp_op2(im, n, ZC_OP_Add, row, zc_imp_cast(im, n, beams, ZC_I64));
    zc_nid flat = zc_imp_node(im, n, ZC_OP_Flatten, 1, &row, 1);
    ZC_IMP_SET(im, Flatten, flat, axis, 2);
    return zc_imp_op2(im, n, ZC_OP_Unsqueeze, zc_imp_done(im, n, flat),
                      zc_imp_ints(im, around, 2, 1));
}

/* What stands in a buffer, as each sequence went through the beams. */
static zc_vid filled_part(zc_imp *im, zc_inode *n, zc_vid buffer, zc_vid end)
{
    const zc_vid beams = zc_imp_in(n, BEAMS);
    zc_vid past = until(im, n, buffer, end);
    if (!beams) return past;
    const zc_vid rows = rows_of(im, n, until(im, n, beams, end));
    const zc_vid in[] = {
        past, zc_imp_op2(im, n, ZC_OP_Expand, rows, zc_imp_op1(im, n, ZC_OP_Shape, past))};
    return zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_GatherElements, 2, in, 1));
}

/* Output i is the buffer with x[batch, 1, heads * size] behind what stands there. */
static zc_status fill(zc_imp *im, zc_inode *n, int i, zc_vid buffer, zc_vid x, zc_vid end,
                      int64_t heads)
{
    const int64_t shape[] = {0, heads, 1, -1};
    if (n->nout <= i || !*n->out[i]) return im->status;
    const zc_vid in[] = {buffer, zc_imp_reshape(im, n, x, shape, 4),
                         zc_imp_op2(im, n, ZC_OP_Expand, end, zc_imp_sizes(im, n, x, 0, 1))};
    zc_vid y = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_TensorScatter, 3, in, 1));
    return im->status == ZC_OK ? zc_imp_bind(im, n, i, y) : im->status;
}

/* Of one token itself: its key and value go into the buffers. */
static zc_status take_buffers(zc_imp *im, zc_inode *n, zc_vid *in, int64_t heads)
{
    const int64_t one = 1;
    ZC_TRY(need(im, n, BUFFER_V, "past values"));
    ZC_TRY(need(im, n, FILLED, "past sequence length"));
    if (zc_imp_rank(im, in[AT(k)]) != 3 || zc_imp_rank(im, in[AT(v)]) != 3)
        return refuse(im, n, "a past needs keys and values of rank 3");
    if (zc_imp_in(n, BEAMS) && in[AT(bias)] &&
        !zc_dim_is(zc_val(im->g, in[AT(bias)])->type.dims[0], 1))
        return refuse(im, n, "beams and a bias of each sequence");
    const zc_vid length = zc_imp_cast(im, n, n->in[FILLED], ZC_I64);
    const zc_vid end = zc_imp_reshape(im, n, length, &one, 1);
    for (int i = 0; i < 2; i++) {
        in[AT(past_k) + i] = filled_part(im, n, n->in[BUFFER_K + i], end);
        ZC_TRY(fill(im, n, 1 + i, n->in[BUFFER_K + i], in[AT(k) + i], end, heads));
    }
    return im->status;
}

/* Scores are output 3. */
static zc_status finish_one(zc_imp *im, zc_inode *n, zc_nid id, bool scores)
{
    if (scores) ZC_IMP_SET(im, Attention, id, qk_matmul_output_mode, 2);
    scores = scores && n->nout > 3 && *n->out[3];
    if (id && scores && !zc_graph_out(im->g, id, 3, NULL)) return zc_imp_nomem(im, "values");
    ZC_TRY(zc_imp_finish_first(im, n, id, 4));
    return scores ? zc_imp_bind(im, n, 3, zc_node_at(im->g, id)->out[3]) : ZC_OK;
}

zc_status zc_step_ms_decoder_masked_multi_head_attention(zc_imp *im, zc_inode *n)
{
    int64_t heads;
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 11));
    const bool shared = zc_imp_take_int(im, n, "past_present_share_buffer", 0) != 0;
    const bool scores = zc_imp_take_int(im, n, "output_qk", 0) != 0;
    ZC_TRY(heads_of(im, n, "num_heads", &heads));
    zc_vid in[ZC_IN_Attention_COUNT] = {
        [AT(q)] = n->in[ONE_Q],
        [AT(k)] = n->in[ONE_K],
        [AT(v)] = n->in[ONE_V],
        [AT(bias)] = zc_imp_in(n, ONE_ADD),
        [AT(hidden)] = zc_imp_in(n, ONE_MASK),
    };
    ZC_TRY(add_biases(im, n, zc_imp_in(n, ONE_BIAS), heads, in));
    if (zc_imp_in(n, BUFFER_K)) {
        if (!shared) return refuse(im, n, "a past that shares no buffer");
        ZC_TRY(take_buffers(im, n, in, heads));
    } else if (zc_imp_rank(im, in[AT(k)]) != 4 || zc_imp_rank(im, in[AT(v)]) != 4) {
        return refuse(im, n, "keys and values without a past that are not of rank 4");
    }
    zc_nid id = plain_attention(im, n, in, scores ? 4 : 1, heads);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return finish_one(im, n, id, scores);
}

/* ---- GroupQueryAttention ---- */

static zc_status refuse_group(zc_imp *im, zc_inode *n)
{
    enum { K_SCALE = 12, V_SCALE };
    const char *k = zc_imp_take_str(im, n, "k_quant_type", "NONE"),
               *v = zc_imp_take_str(im, n, "v_quant_type", "NONE");
    ZC_TRY(im->status);
    if (strcmp(k, "NONE") != 0 || strcmp(v, "NONE") != 0 || zc_imp_in(n, K_SCALE) ||
        zc_imp_in(n, V_SCALE))
        return refuse(im, n, "a quantised cache");
    if (zc_imp_take_int(im, n, "sliding_window_cache", 0))
        return refuse(im, n, "sliding_window_cache");
    return im->status;
}

/* Those of groups of heads alone. */
static zc_status group_attributes(zc_imp *im, zc_inode *n, zc_nid id)
{
    int64_t window = zc_imp_take_int(im, n, "local_window_size", -1);
    int64_t scores = zc_imp_take_int(im, n, "qk_output", 0);
    if (window < -1 || window > INT32_MAX)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "local_window_size out of range (got %lld, need [-1, %d])",
                           (long long)window, INT32_MAX);
    if (scores < 0 || scores > 2)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "qk_output out of range (got %lld, need [0, 2])",
                           (long long)scores);
    if (!scores && n->nout > 3)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "qk_output says that there are no scores");
    ZC_IMP_SET(im, Attention, id, is_causal, zc_imp_take_int(im, n, "causal", 1) != 0);
    ZC_IMP_SET(im, Attention, id, softcap, (float)zc_imp_take_float(im, n, "softcap", 0));
    ZC_IMP_SET(im, Attention, id, interleaved, zc_imp_take_int(im, n, "rotary_interleaved", 0));
    ZC_IMP_SET(im, Attention, id, zero_sink, zc_imp_take_int(im, n, "smooth_softmax", -1) > 0);
    ZC_IMP_SET(im, Attention, id, norm_epsilon,
               (float)zc_imp_take_float(im, n, "qk_norm_epsilon", 1e-6f));
    ZC_IMP_SET(im, Attention, id, window, window > 0 ? window : 0);
    if (scores) ZC_IMP_SET(im, Attention, id, qk_matmul_output_mode, scores + 1);
    return zc_imp_no_more_attrs(im, n);
}

zc_status zc_step_ms_group_query_attention(zc_imp *im, zc_inode *n)
{
    enum { Q, K, V, PAST_K, PAST_V, LENGTHS, TOTAL, COS, SIN, POSITIONS, ADD, SINK };
    enum { Q_NORM = 14, K_NORM };
    const int64_t all = -1;
    int64_t heads, kv_heads;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 16));
    ZC_TRY(refuse_group(im, n));
    ZC_TRY(need(im, n, LENGTHS, "lengths of the sequences"));
    ZC_TRY(need(im, n, TOTAL, "total sequence length"));
    bool turns = zc_imp_take_int(im, n, "do_rotary", 0) != 0;
    if (turns) ZC_TRY(need(im, n, COS, "cos_cache"));
    if (turns) ZC_TRY(need(im, n, SIN, "sin_cache"));
    ZC_TRY(heads_of(im, n, "num_heads", &heads));
    ZC_TRY(heads_of(im, n, "kv_num_heads", &kv_heads));
    zc_vid lengths = n->in[LENGTHS];
    if (zc_imp_rank(im, lengths) != 1) lengths = zc_imp_reshape(im, n, lengths, &all, 1);
    const zc_vid in[ZC_IN_Attention_COUNT] = {
        [AT(q)] = n->in[Q],
        [AT(k)] = zc_imp_in(n, K),
        [AT(v)] = zc_imp_in(n, V),
        [AT(past_k)] = zc_imp_in(n, PAST_K),
        [AT(past_v)] = zc_imp_in(n, PAST_V),
        [AT(lengths)] = lengths,
        [AT(bias)] = zc_imp_in(n, ADD),
        [AT(cos)] = turns ? n->in[COS] : 0,
        [AT(sin)] = turns ? n->in[SIN] : 0,
        [AT(positions)] = turns ? zc_imp_in(n, POSITIONS) : 0,
        [AT(sink)] = zc_imp_in(n, SINK),
        [AT(q_norm)] = zc_imp_in(n, Q_NORM),
        [AT(k_norm)] = zc_imp_in(n, K_NORM),
        [AT(total)] = n->in[TOTAL],
    };
    zc_nid id = attention(im, n, in, n->nout, heads, kv_heads);
    ZC_TRY(group_attributes(im, n, id));
    return zc_imp_finish(im, n, id);
}

/* ---- MRotaryEmbedding: RotaryEmbedding by rows of three kinds of positions ---- */

/* Which of the three each of a row's columns is taken by, and the columns' numbers: two lists of
 * `width` in the node's arena. NULL: there is no such row. */
static int64_t *columns_of(zc_imp *im, zc_inode *n, int64_t width)
{
    zc_ints section = {0};
    const int64_t mixed = zc_imp_take_int(im, n, "mrope_layout", 0);
    zc_imp_take_ints(im, n, "mrope_section", &section);
    int64_t *of = zc_arena_alloc(n->arena, 2 * (size_t)width, sizeof *of), end[3] = {0}, sum = 0;
    if (!of) zc_imp_nomem(im, "positions");
    if (im->status != ZC_OK) return NULL;
    for (int i = 0; i < section.n && i < 3; i++) {
        const int64_t size = section.v[i];
        end[i] = sum = size >= 0 && size <= width - sum ? sum + size : -width;
    }
    if (section.n != 3 || sum != width || mixed < 0 || mixed > 1) {
        zc_imp_fail(im, n, ZC_ERR_MODEL,
                    "mrope_section and mrope_layout need three sizes whose sum is %lld, and 0 or 1 "
                    "(got %lld sizes, and %lld)",
                    (long long)width, (long long)section.n, (long long)mixed);
        return NULL;
    }
    for (int64_t i = 0; i < width; i++) {
        const bool other = i % 3 && i < 3 * section.v[i % 3];
        of[i] = mixed ? (other ? i % 3 : 0) : (i >= end[0]) + (i >= end[1]);
        of[width + i] = i;
    }
    return of;
}

/* Where in a table[rows, width] the elements of each token's row stand: [batch, length, width]. */
static zc_vid elements_of(zc_imp *im, zc_inode *n, zc_vid positions, int64_t width)
{
    static const int64_t perm[] = {1, 2, 0};
    const int64_t *of = columns_of(im, n, width);
    if (!of) return 0;
    /* Gather would count a negative position from the end. */
    positions = zc_imp_done(
        im, n, zc_imp_expr(im, n, 1, &positions, "select(x0 < 0, x0 - 1099511627776, x0)"));
    zc_vid at = zc_imp_op2(im, n, ZC_OP_Gather, positions, zc_imp_ints(im, of, (int)width, 1));
    at = zc_imp_done(im, n, zc_imp_transpose(im, n, at, perm, 3));
    at = zc_imp_op2(im, n, ZC_OP_Mul, at, zc_imp_scalar(im, ZC_I64, (double)width));
    return zc_imp_op2(im, n, ZC_OP_Add, at, zc_imp_ints(im, of + width, (int)width, 1));
}

static zc_status need_tables(zc_imp *im, zc_inode *n, const int *inputs)
{
    for (int i = 0; i < 2; i++) {
        const int rank = zc_imp_rank(im, n->in[inputs[i]]);
        if (rank != 2)
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "input %d has a wrong rank (got %d, need 2)",
                               inputs[i], rank);
        const zc_dim width = zc_val(im->g, n->in[inputs[i]])->type.dims[1];
        if (!zc_dim_is_const(width) || width.k > UINT16_MAX)
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "input %d must have a known number of columns, at most %d",
                               inputs[i], UINT16_MAX);
    }
    return ZC_OK;
}

/* Packed batches are no other for it. */
zc_status zc_step_ms_mrotary_embedding(zc_imp *im, zc_inode *n)
{
    enum { X, POSITIONS, COS, SIN };
    static const int tables[] = {COS, SIN};
    const int64_t flat = -1;
    ZC_TRY(zc_imp_need_inputs(im, n, 4, 4));
    ZC_TRY(need_tables(im, n, tables));
    const double scale = zc_imp_take_float(im, n, "scale", 1);
    if (zc_imp_rank(im, n->in[POSITIONS]) != 3)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "position_ids have a wrong rank (got %d, need 3)",
                           zc_imp_rank(im, n->in[POSITIONS]));
    zc_imp_take_int(im, n, "is_packed_batching", 0);
    const int64_t width = zc_val(im->g, n->in[COS])->type.dims[1].k;
    const zc_vid at = elements_of(im, n, n->in[POSITIONS], width);
    zc_vid in[] = {n->in[X], n->in[COS], n->in[SIN]};
    for (int i = 1; i < 3; i++) {
        in[i] = zc_imp_reshape(im, n, in[i], &flat, 1);
        in[i] = zc_imp_op2(im, n, ZC_OP_Gather, in[i], at);
        if (scale != 1)
            in[i] = zc_imp_op2(im, n, ZC_OP_Mul, in[i],
                               zc_imp_scalar(im, zc_imp_dtype(im, in[i]), scale));
    }
    ZC_TRY(im->status);
    zc_nid id = zc_imp_node(im, n, ZC_OP_RotaryEmbedding, 3, in, 1);
    ZC_IMP_SET(im, RotaryEmbedding, id, interleaved, zc_imp_take_int(im, n, "interleaved", 0));
    ZC_IMP_SET(im, RotaryEmbedding, id, num_heads, zc_imp_take_int(im, n, "num_heads", 0));
    ZC_IMP_SET(im, RotaryEmbedding, id, rotary_embedding_dim,
               zc_imp_take_int(im, n, "rotary_embedding_dim", 0));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return zc_imp_finish(im, n, id);
}
