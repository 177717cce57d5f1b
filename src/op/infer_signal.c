#include <string.h>

#include "op/infer.h"

#define DECLARE(n) zc_status n(zc_infer *f);
DECLARE(zc_dt_hann_window)
DECLARE(zc_dt_hamming_window)
DECLARE(zc_dt_blackman_window)
DECLARE(zc_dt_mel_weight_matrix)
DECLARE(zc_dt_tfidf)
DECLARE(zc_infer_dft)
DECLARE(zc_infer_stft)
DECLARE(zc_infer_signal_window)
DECLARE(zc_infer_mel_weight_matrix)
DECLARE(zc_infer_tfidf)
#undef DECLARE

static zc_status numbered_dtype(zc_infer *f, int64_t number)
{
    if (number < 1 || number >= ZC_DTYPE_END || !zc_dtype_valid((int)number))
        return zc_infer_fail(f, "output_datatype is no element type (got %lld)", (long long)number);
    f->out[0].type.dtype = (zc_dtype)number;
    return ZC_OK;
}

zc_status zc_dt_hann_window(zc_infer *f)
{
    return numbered_dtype(f, ZC_ATTRS(f, HannWindow)->output_datatype);
}

zc_status zc_dt_hamming_window(zc_infer *f)
{
    return numbered_dtype(f, ZC_ATTRS(f, HammingWindow)->output_datatype);
}

zc_status zc_dt_blackman_window(zc_infer *f)
{
    return numbered_dtype(f, ZC_ATTRS(f, BlackmanWindow)->output_datatype);
}

zc_status zc_dt_mel_weight_matrix(zc_infer *f)
{
    return numbered_dtype(f, ZC_ATTRS(f, MelWeightMatrix)->output_datatype);
}

/* The one element of input i as a dimension: a fresh symbol when unknown. Constants below `least`
 * are refused. */
static zc_status scalar_dim(zc_infer *f, int i, const char *what, int64_t least, zc_dim *out)
{
    const zc_vals *v = &f->in[i].vals;
    *out = v->n == 1 ? v->v[0] : zc_dim_fresh(f->dims);
    if (zc_dim_is_const(*out) && out->k < least)
        return zc_infer_fail(f, "%s is too small (got %lld, need at least %lld)", what,
                             (long long)out->k, (long long)least);
    return ZC_OK;
}

static zc_dim half_plus_one(zc_infer *f, zc_dim n)
{
    return zc_dim_add(f->dims, zc_dim_div(f->dims, n, zc_dim_const(2)), zc_dim_const(1));
}

static zc_status dft_axis(zc_infer *f, int rank, int *axis)
{
    const int64_t *v;
    int n;
    ZC_TRY(zc_infer_const_ints(f, 2, &v, &n));
    if (zc_in_present(f, 2) && n < 0) {
        *axis = -1;
        return ZC_OK;
    }
    *axis = 0;
    ZC_TRY(zc_infer_axis(f, n > 0 ? v[0] : -2, rank, axis));
    if (*axis == rank - 1)
        return zc_infer_fail(f, "the last axis holds the complex parts (got axis %d)", *axis);
    return ZC_OK;
}

zc_status zc_infer_dft(zc_infer *f)
{
    const zc_attrs_DFT *a = ZC_ATTRS(f, DFT);
    const zc_type *x = zc_in(f, 0);
    if (x->rank < 2)
        return zc_infer_fail(f, "input has a wrong rank (got %d, need at least 2)", x->rank);
    zc_dim parts = x->dims[x->rank - 1];
    if (zc_dim_is_const(parts) && parts.k != 1 && parts.k != 2)
        return zc_infer_fail(f, "the last dimension is not 1 (real) or 2 (complex) (got %lld)",
                             (long long)parts.k);
    int axis = 0;
    ZC_TRY(dft_axis(f, x->rank, &axis));
    if (axis < 0) return zc_infer_set(f, 0, x->rank, NULL);
    bool inverse_real = a->inverse && a->onesided;
    zc_dim n = x->dims[axis];
    if (inverse_real)
        n = zc_dim_mul(f->dims, zc_dim_const(2), zc_dim_sub(f->dims, n, zc_dim_const(1)));
    if (zc_in_present(f, 1)) ZC_TRY(scalar_dim(f, 1, "dft_length", 1, &n));
    zc_dim dims[ZC_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = a->onesided && !a->inverse ? half_plus_one(f, n) : n;
    dims[x->rank - 1] = zc_dim_const(inverse_real ? 1 : 2);
    return zc_infer_set(f, 0, x->rank, dims);
}

zc_status zc_infer_stft(zc_infer *f)
{
    const zc_type *x = zc_in(f, 0);
    if (x->rank != 3) return zc_infer_fail(f, "signal has a wrong rank (got %d, need 3)", x->rank);
    zc_dim step, length = x->dims[1];
    ZC_TRY(scalar_dim(f, 1, "frame_step", 1, &step));
    if (zc_in_present(f, 2)) {
        if (zc_in(f, 2)->rank != 1)
            return zc_infer_fail(f, "window has a wrong rank (got %d, need 1)", zc_in(f, 2)->rank);
        length = zc_in(f, 2)->dims[0];
    }
    if (zc_in_present(f, 3)) {
        zc_dim window = length;
        ZC_TRY(scalar_dim(f, 3, "frame_length", 1, &length));
        if (zc_in_present(f, 2))
            ZC_TRY(zc_infer_same(f, window, length, "sizes of the window and of a frame"));
    }
    if (zc_dim_is_const(length) && zc_dim_is_const(x->dims[1]) && length.k > x->dims[1].k)
        return zc_infer_fail(f, "a frame is longer than the signal (got %lld, need at most %lld)",
                             (long long)length.k, (long long)x->dims[1].k);
    zc_dim frames = zc_dim_div(f->dims, zc_dim_sub(f->dims, x->dims[1], length), step);
    frames = zc_dim_add(f->dims, frames, zc_dim_const(1));
    zc_dim bins = ZC_ATTRS(f, STFT)->onesided ? half_plus_one(f, length) : length;
    zc_dim dims[4] = {x->dims[0], frames, bins, zc_dim_const(2)};
    return zc_infer_set(f, 0, 4, dims);
}

zc_status zc_infer_signal_window(zc_infer *f)
{
    zc_dim n;
    ZC_TRY(scalar_dim(f, 0, "size", 0, &n));
    return zc_infer_set(f, 0, 1, &n);
}

zc_status zc_infer_mel_weight_matrix(zc_infer *f)
{
    zc_dim dims[2], dft;
    ZC_TRY(scalar_dim(f, 0, "num_mel_bins", 0, &dims[1]));
    ZC_TRY(scalar_dim(f, 1, "dft_length", 1, &dft));
    dims[0] = half_plus_one(f, dft);
    return zc_infer_set(f, 0, 2, dims);
}

zc_status zc_dt_tfidf(zc_infer *f)
{
    f->out[0].type.dtype = ZC_F32;
    return ZC_OK;
}

/* Where each n-gram length's pool begins, and how many entries the pools hold. */
static zc_status check_pools(zc_infer *f, const zc_attrs_TfIdfVectorizer *a)
{
    int64_t entries = 0;
    for (int n = 0; n < a->ngram_counts.n; n++) {
        int64_t begin = a->ngram_counts.v[n];
        int64_t end = n + 1 < a->ngram_counts.n ? a->ngram_counts.v[n + 1] : a->pool_int64s.n;
        if (begin < 0 || end < begin || end > a->pool_int64s.n || (end - begin) % (n + 1))
            return zc_infer_fail(
                f, "ngram_counts do not divide the pool (got %lld to %lld for length %d)",
                (long long)begin, (long long)end, n + 1);
        entries += (end - begin) / (n + 1);
    }
    if (entries != a->ngram_indexes.n)
        return zc_infer_fail(f, "ngram_indexes has a wrong length (got %d, need %lld)",
                             a->ngram_indexes.n, (long long)entries);
    if (a->weights.n && a->weights.n != a->ngram_indexes.n)
        return zc_infer_fail(f, "weights has a wrong length (got %d, need %d)", a->weights.n,
                             a->ngram_indexes.n);
    return ZC_OK;
}

zc_status zc_infer_tfidf(zc_infer *f)
{
    const zc_attrs_TfIdfVectorizer *a = ZC_ATTRS(f, TfIdfVectorizer);
    const zc_type *x = zc_in(f, 0);
    static const char *const modes[] = {"TF", "IDF", "TFIDF"};
    bool known = false;
    for (size_t i = 0; i < ZC_COUNTOF(modes); i++) known |= strcmp(a->mode, modes[i]) == 0;
    if (!known)
        return zc_infer_fail(f, "no such mode (got " ZC_NAME ", need TF, IDF or TFIDF)", a->mode);
    if (a->min_gram_length < 1 || a->max_gram_length < a->min_gram_length ||
        a->max_gram_length > a->ngram_counts.n || a->max_skip_count < 0)
        return zc_infer_fail(
            f, "n-gram lengths or skips are out of range (got %lld to %lld, %lld skips)",
            (long long)a->min_gram_length, (long long)a->max_gram_length,
            (long long)a->max_skip_count);
    ZC_TRY(check_pools(f, a));
    if (x->rank != 1 && x->rank != 2)
        return zc_infer_fail(f, "input has a wrong rank (got %d, need 1 or 2)", x->rank);
    int64_t width = 0;
    for (int i = 0; i < a->ngram_indexes.n; i++) {
        if (a->ngram_indexes.v[i] < 0 || a->ngram_indexes.v[i] > INT32_MAX)
            return zc_infer_fail(f, "an ngram index is out of range (got %lld)",
                                 (long long)a->ngram_indexes.v[i]);
        if (a->ngram_indexes.v[i] >= width) width = a->ngram_indexes.v[i] + 1;
    }
    zc_dim dims[2] = {x->dims[0], zc_dim_const(width)};
    return x->rank == 1 ? zc_infer_set(f, 0, 1, &dims[1]) : zc_infer_set(f, 0, 2, dims);
}
