/* What the attributes of RNN, GRU, LSTM and DynamicQuantizeLSTM say. */
#ifndef ZC_OP_RECURRENT_H
#define ZC_OP_RECURRENT_H

#include "op/infer.h"

/* An activation and its parameters. */
typedef struct zc_rnn_act {
    int kind; /* row of the table in recurrent.c */
    double alpha, beta;
} zc_rnn_act;

typedef struct zc_recurrent {
    int gates; /* RNN 1, GRU 3 (update, reset, hidden), LSTM 4 (input, output, forget, cell) */
    int directions;
    bool reverse;      /* the only direction runs backwards */
    bool batch_first;  /* layout 1 */
    bool linear_first; /* GRU's linear_before_reset */
    bool input_forget; /* LSTM: forget gate is 1 - input gate */
    bool clips;
    double clip;
    int64_t hidden; /* -1: not given */
    int functions;  /* activations a direction: RNN 1, GRU 2, LSTM 3 */
    zc_rnn_act act[6];
} zc_recurrent;

/* Reads and checks the attributes of one of these operations. */
zc_status zc_recurrent_of(zc_op op, const void *attrs, const char *subject, zc_diag *diag,
                          zc_recurrent *out);

/* Sigmoid for gates and tanh for states, as when the attribute is left out. */
bool zc_rnn_acts_are_usual(const zc_recurrent *r);
double zc_rnn_act_apply(const zc_rnn_act *act, double x);

#endif
