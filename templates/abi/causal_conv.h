/* Parameters of causal_conv.cu. x is [rows, length], rows = batch * channels. */
#ifndef ZC_ABI_CAUSAL_CONV_H
#define ZC_ABI_CAUSAL_CONV_H

struct zc_causal_conv_params {
    const void *x, *w, *bias, *past;        /* bias, past: NULL: none */
    void *y, *state;                        /* NULL: not wanted */
    long long rows, channels, length, kept; /* kept: taps less one, elements a row of the state */
};

#endif
