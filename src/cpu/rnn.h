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
