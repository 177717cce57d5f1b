/* EmbedLayerNormalization: reference and fast kernel, which differ in how rows are normalised. */
#include "cpu/copy.h"
#include "cpu/fast.h"

#define IN(input) ZC_IN_EmbedLayerNormalization_##input

/* Tables whose rows are added up: words, positions, segments. */
typedef struct embedding {
    const zc_tensor *ids, *table; /* ids NULL: the position in the sequence is the row */
    int64_t count;                /* of ids; they are used again after that many */
} embedding;

typedef struct job {
    embedding e[3];
    int n; /* 2 without segments */
    int64_t words, length, hidden;
    zc_tensor *sum;
} job;

static int64_t row_of(const embedding *e, const job *j, int64_t word)
{
    if (!e->ids) return word % j->length;
    int64_t id = zc_geti(e->ids, word % e->count);
    return id < 0 ? id + e->table->dims[0] : id; /* as Gather counts */
}

static zc_status check_rows(zc_kctx *k, const job *j)
{
    static const char *const names[] = {"word id", "position id", "segment id"};
    for (int t = 0; t < j->n; t++) {
        const embedding *e = &j->e[t];
        ZC_TRY(zc_check_length(k, e->table->dims[1], j->hidden, "embedding size"));
        if (e->ids && e->count != j->words && e->count != j->length && e->count != 1)
            return zc_kernel_fail(k, "wrong number of ids (got %lld, need %lld or %lld)",
                                  (long long)e->count, (long long)j->words, (long long)j->length);
        for (int64_t w = 0; w < j->words; w++) {
            int64_t row = row_of(e, j, w), rows = e->table->dims[0];
            if (row < 0 || row >= rows)
                return zc_kernel_fail(k, "%s out of range (got %lld, need [%lld, %lld])", names[t],
                                      (long long)(row < 0 ? row - rows : row), (long long)-rows,
                                      (long long)rows - 1);
        }
    }
    return ZC_OK;
}

static bool all_f32(const job *j)
{
    bool plain = j->sum->dtype == ZC_F32;
    for (int t = 0; t < j->n; t++) plain &= j->e[t].table->dtype == ZC_F32;
    return plain;
}

static void add_f32(const job *j, int64_t word)
{
    float *sum = (float *)j->sum->data + word * j->hidden;
    for (int t = 0; t < j->n; t++) {
        const float *row =
            (const float *)j->e[t].table->data + row_of(&j->e[t], j, word) * j->hidden;
        for (int64_t h = 0; h < j->hidden; h++) sum[h] = t ? sum[h] + row[h] : row[h];
    }
}

static void add_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t w = begin; w < end; w++) {
        int64_t at[3];
        if (all_f32(j)) {
            add_f32(j, w);
            continue;
        }
        for (int t = 0; t < j->n; t++) at[t] = row_of(&j->e[t], j, w) * j->hidden;
        for (int64_t h = 0; h < j->hidden; h++) {
            double sum = 0;
            for (int t = 0; t < j->n; t++) sum += zc_get(j->e[t].table, at[t] + h);
            zc_put(j->sum, w * j->hidden + h, sum);
        }
    }
}

/* Words of each sequence whose mask is 1; zeros without a mask. */
static void count_words(zc_kctx *k, const job *j)
{
    if (!zc_output(k, 1)) return;
    for (int64_t b = 0; b < k->in[IN(words)].dims[0]; b++) {
        int64_t n = 0;
        for (int64_t s = 0; zc_input(k, IN(mask)) && s < j->length; s++)
            n += zc_geti(&k->in[IN(mask)], b * j->length + s) == 1;
        zc_puti(&k->out[1], b, n);
    }
}

typedef zc_status (*normalise_fn)(zc_kctx *k);

static zc_status normalise(zc_kctx *k, const zc_tensor *sum, normalise_fn layer_norm)
{
    zc_attrs_LayerNormalization attrs;
    zc_attrs_default(zc_op_get(ZC_OP_LayerNormalization), &attrs);
    attrs.epsilon = ZC_ATTRS(k, EmbedLayerNormalization)->epsilon;
    const zc_tensor in[] = {*sum, k->in[IN(gamma)], k->in[IN(beta)]};
    zc_kctx inner = zc_inner(k, ZC_OP_LayerNormalization, &attrs, 3, in, &k->out[0]);
    return layer_norm(&inner);
}

/* Memory for the sum: that of output 2, if it is wanted in the sum's type. */
static zc_status sum_room(zc_kctx *k, zc_tensor *sum)
{
    const zc_tensor *wanted = zc_output(k, 2);
    size_t bytes;
    if (wanted && wanted->dtype == sum->dtype)
        sum->data = wanted->data;
    else
        sum->data = zc_tensor_bytes(sum, &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
    return sum->data ? ZC_OK : zc_fail_nomem(k->diag, "sum of embeddings", 0);
}

static zc_status embed(zc_kctx *k, normalise_fn layer_norm)
{
    /* The sum is kept in f32 at least, so that a narrower type is rounded once. */
    zc_tensor sum = {.rank = 3,
                     .dims = {k->in[IN(words)].dims[0], k->in[IN(words)].dims[1],
                              k->in[IN(word_table)].dims[1]}};
    sum.dtype = k->in[IN(word_table)].dtype == ZC_F64 ? ZC_F64 : ZC_F32;
    job j = {
        .length = k->in[IN(words)].dims[1], .hidden = k->in[IN(word_table)].dims[1], .sum = &sum};
    j.words = zc_tensor_numel(&k->in[IN(words)]);
    j.n = zc_input(k, IN(segments)) ? 3 : 2;
    j.e[0] = (embedding){&k->in[IN(words)], &k->in[IN(word_table)], j.words};
    j.e[1] = (embedding){NULL, &k->in[IN(position_table)], 0};
    if (zc_input(k, IN(positions)))
        j.e[1] = (embedding){&k->in[IN(positions)], &k->in[IN(position_table)],
                             zc_tensor_numel(&k->in[IN(positions)])};
    if (zc_input(k, IN(segments)))
        j.e[2] = (embedding){&k->in[IN(segments)], &k->in[IN(segment_table)],
                             zc_tensor_numel(&k->in[IN(segments)])};
    if (zc_input(k, IN(mask)))
        ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[IN(mask)]), j.words, "mask length"));
    count_words(k, &j);
    if (zc_tensor_numel(&sum) == 0) return ZC_OK;
    ZC_TRY(check_rows(k, &j));
    ZC_TRY(sum_room(k, &sum));
    zc_parallel(k, j.words, 1, add_rows, &j);
    zc_tensor *wanted = zc_output(k, 2);
    for (int64_t i = 0; wanted && wanted->data != sum.data && i < zc_tensor_numel(&sum); i++)
        zc_put(wanted, i, zc_get(&sum, i));
    return zc_present(&k->out[0]) ? normalise(k, &sum, layer_norm) : ZC_OK;
}

zc_status zc_k_EmbedLayerNormalization(zc_kctx *k)
{
    return embed(k, zc_k_LayerNormalization);
}

bool zc_fits_embed_norm(const zc_kctx *k)
{
    int64_t hidden = k->in[IN(word_table)].dims[1];
    for (int i = 2; i < 7; i++)
        if (zc_input(k, i) && k->in[i].dtype != ZC_F32) return false;
    return zc_present(&k->out[0]) && k->out[0].dtype == ZC_F32 &&
           zc_tensor_numel(&k->in[IN(gamma)]) == hidden &&
           zc_tensor_numel(&k->in[IN(beta)]) == hidden;
}

zc_status zc_fast_embed_norm(zc_kctx *k)
{
    return embed(k, zc_fast_layer_norm);
}
