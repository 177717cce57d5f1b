#include <stdlib.h>
#include <string.h>

#include "abi/tfidf.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

enum { POOL_MOST = 1 << 18 };

/* One n-gram of the pool. */
typedef struct gram {
    int64_t column;
    int64_t entry; /* its place among all n-grams */
    int64_t at;    /* in the pool */
    int length;
} gram;

static int by_column(const void *a, const void *b)
{
    const gram *x = a, *y = b;
    if (x->column != y->column) return x->column < y->column ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* The n-grams in the order of their columns; the shape function has checked the lists. */
static gram *list_grams(const zc_attrs_TfIdfVectorizer *a, zc_arena *arena)
{
    gram *grams = zc_arena_alloc(arena, (size_t)a->ngram_indexes.n + 1, sizeof *grams);
    int entry = 0;
    for (int m = 0; grams && m < a->ngram_counts.n; m++) {
        int64_t end = m + 1 < a->ngram_counts.n ? a->ngram_counts.v[m + 1] : a->pool_int64s.n;
        for (int64_t at = a->ngram_counts.v[m]; at < end && entry < a->ngram_indexes.n;
             at += m + 1) {
            grams[entry] = (gram){a->ngram_indexes.v[entry], entry, at, m + 1};
            entry++;
        }
    }
    if (grams) qsort(grams, (size_t)entry, sizeof *grams, by_column);
    return grams;
}

static void open_table(zc_gen *g, const char *type, const char *name)
{
    zc_buf_printf(&g->spec, "static __device__ const %s z_%s[] = {", type, name);
}
static void put_number(zc_gen *g, int64_t v)
{
    zc_buf_printf(&g->spec, v == INT64_MIN ? "%lldLL - 1," : "%lldLL,",
                  (long long)(v == INT64_MIN ? v + 1 : v));
}
static void close_table(zc_gen *g)
{
    zc_buf_puts(&g->spec, "0};\n");
}

static void put_pool(zc_gen *g, zc_ints pool)
{
    open_table(g, "i64", "pool");
    for (int i = 0; i < pool.n; i++) put_number(g, pool.v[i]);
    close_table(g);
}

static void put_grams(zc_gen *g, const gram *grams, int n, zc_floats weights)
{
    open_table(g, "i32", "gram");
    for (int i = 0; i < n; i++) put_number(g, grams[i].at);
    close_table(g);
    open_table(g, "i32", "length");
    for (int i = 0; i < n; i++) put_number(g, grams[i].length);
    close_table(g);
    open_table(g, "u32", "weight");
    for (int i = 0; i < n; i++) {
        float weight = weights.n ? weights.v[grams[i].entry] : 1;
        uint32_t bits;
        memcpy(&bits, &weight, sizeof bits);
        put_number(g, bits);
    }
    close_table(g);
}

static void put_columns(zc_gen *g, const gram *grams, int n)
{
    int columns = 0;
    open_table(g, "i64", "column");
    for (int i = 0; i < n; i++)
        if (i == 0 || grams[i].column != grams[i - 1].column) put_number(g, grams[i].column);
    close_table(g);
    open_table(g, "i32", "first");
    for (int i = 0; i < n; i++) {
        if (i && grams[i].column == grams[i - 1].column) continue;
        put_number(g, i);
        columns++;
    }
    put_number(g, n);
    close_table(g);
    zc_gen_define(g, "COLUMNS", "%d", columns);
}

zc_status zc_gen_tfidf(zc_gen *g)
{
    const zc_attrs_TfIdfVectorizer *a = ZC_ATTRS(g, TfIdfVectorizer);
    zc_dtype in = zc_gen_in_type(g, 0);
    if (!zc_dtype_is_int(in) || !zc_kernel_type(in))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in));
    if (a->pool_int64s.n > POOL_MOST)
        return zc_gen_decline(g, "more than %d items in the n-gram pool", POOL_MOST);
    const gram *grams = list_grams(a, g->arena);
    if (!grams) return zc_fail_nomem(g->diag, "n-grams", (size_t)a->ngram_indexes.n);
    zc_gen_type(g, "IN", in);
    zc_gen_define(g, "MOST_SKIPS", "%lldLL", (long long)a->max_skip_count);
    zc_gen_define(g, "SHORTEST", "%lld", (long long)a->min_gram_length);
    zc_gen_define(g, "LONGEST", "%lld", (long long)a->max_gram_length);
    zc_gen_define(g, "WEIGH", "%d",
                  strcmp(a->mode, "TFIDF") == 0 ? 2 : strcmp(a->mode, "IDF") == 0);
    put_pool(g, a->pool_int64s);
    put_grams(g, grams, a->ngram_indexes.n, a->weights);
    put_columns(g, grams, a->ngram_indexes.n);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 128, BLOCKS_PER_SM = 64 };

zc_status zc_launch_tfidf(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    struct zc_tfidf_params p = {.in = x->data,
                                .out = y->data,
                                .rows = x->rank == 2 ? x->dims[0] : 1,
                                .width = x->dims[x->rank - 1],
                                .columns = y->dims[y->rank - 1]};
    size_t bytes = 0;
    if (!zc_tensor_bytes(y, &bytes)) return zc_launch_fail(l, "the output is too large");
    if (bytes == 0) return ZC_OK;
    ZC_TRY(zc_launch_fill(l, p.out, 0, bytes));
    int64_t warps = zc_tensor_numel(y); /* at least the elements that n-grams have */
    zc_dim3 grid = {zc_launch_blocks(warps, BLOCK / 32, BLOCKS_PER_SM * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
