/* Parameters of roi.cu. */
#ifndef ZC_ABI_ROI_H
#define ZC_ABI_ROI_H

struct zc_fault_word;

struct zc_roi_params {
    const void *in, *rois, *batches;
    void *out;
    struct zc_fault_word *fault;
    unsigned step;
    int samples; /* an axis of a bin; 0: as many as the bin has cells */
    long long batch, channels, total;
    int in_h, in_w, out_h, out_w;
    double scale;
};

#endif
