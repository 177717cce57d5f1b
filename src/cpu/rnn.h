/* Recurrent layers: what the reference and the fast kernel share. */
#ifndef ZC_CPU_RNN_H
#define ZC_CPU_RNN_H

#include "cpu/kernel.h"
#include "op/recurrent.h"

/* One layer on concrete tensors. Gates lie one after the other: a vector of `gates` has gates *
 * hidden elements. */
typedef struct zc_rnn zc_rnn;
struct zc_rnn {
    const zc_kctx *k;
    zc_recurrent r;
    const zc_tensor *x, *w, *rec, *bias, *lengths, *h0, *c0, *peepholes; /* NULL: absent */
    zc_tensor *y, *yh, *yc;
    int64_t length, batch, input, hidden;
    /* out[gates] = W of direction d times x at step t of sequence b, without bias. */
    void (*project)(const zc_rnn *n, int64_t d, int64_t t, int64_t b, double *out);
    /* out[i] = row `first + i` of R of direction d times v[hidden], i < count. tmp: hidden floats.
     */
    void (*recur)(const zc_rnn *n, int64_t d, int64_t first, int64_t count, const double *v,
                  float *tmp, double *out);
    const void *user; /* of project and recur */
    double *work;     /* scratch of zc_rnn_run */
};

/* Weights of DynamicQuantizeLSTM, packed: w or r of each direction. */
typedef struct zc_rnn_bytes {
    int64_t depth, columns; /* of a direction's matrix */
    const void *packed[2];  /* see cpu/bytes.h */
    const int32_t *sums[2]; /* of a column, less what its zero point makes of `depth` ones */
    const int32_t *none;    /* zeros */
    const float *scale[2];  /* a column */
    int zero[2];
} zc_rnn_bytes;

/* Input i with the scale and the zero points behind it. */
zc_status zc_rnn_bytes_of(zc_kctx *k, const zc_rnn *n, int i, int scale, zc_rnn_bytes *out);
/* A zero point for all columns of a direction, and sums within 32 bits? */
bool zc_rnn_bytes_fit(const zc_kctx *k, int i, int scale);
/* y = x W (+ bias) of direction d, with x[m][depth] quantised as it stands to `room` of m *
 * zc_bytes_row(depth). */
void zc_rnn_bytes_times(const zc_rnn_bytes *b, int64_t d, int64_t m, const float *x,
                        const float *bias, uint8_t *room, float *y);

/* Fills n from the operation and runs it. The caller has set project and recur. */
zc_status zc_rnn_of(zc_kctx *k, zc_rnn *n);
zc_status zc_rnn_run(zc_kctx *k, zc_rnn *n);

/* Element of x at which the input of step t of sequence b begins. */
static inline int64_t zc_rnn_x_at(const zc_rnn *n, int64_t t, int64_t b)
{
    return (n->r.batch_first ? b * n->length + t : t * n->batch + b) * n->input;
}

/* Element of the states and of y at which those of sequence b in direction d begin. */
static inline int64_t zc_rnn_state_at(const zc_rnn *n, int64_t d, int64_t b)
{
    return (n->r.batch_first ? b * n->r.directions + d : d * n->batch + b) * n->hidden;
}
static inline int64_t zc_rnn_y_at(const zc_rnn *n, int64_t d, int64_t t, int64_t b)
{
    const int64_t dirs = n->r.directions;
    return (n->r.batch_first ? (b * n->length + t) * dirs + d : (t * dirs + d) * n->batch + b) *
           n->hidden;
}

#endif
