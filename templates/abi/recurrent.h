/* Parameters of recurrent.cu. Buffers hold compute values; a state buffer is
 * [directions][batch][hidden]. */
#ifndef ZC_ABI_RECURRENT_H
#define ZC_ABI_RECURRENT_H

struct zc_recurrent_params {
    const void *x, *w, *r, *bias, *lengths, *h0, *c0, *peepholes; /* NULL: absent */
    void *y, *yh, *yc;                                            /* NULL: not wanted */
    void *pre;        /* [directions][length * batch][gates * hidden]: input part and biases */
    void *from, *to;  /* hidden state before and after the step */
    void *cell;       /* LSTM */
    void *update, *v; /* GRU: update gate; reset state */
    struct zc_fault_word *fault;
    long long length, batch, input, hidden;
    long long i; /* the step */
    unsigned step;
    int pad;
};

#endif
