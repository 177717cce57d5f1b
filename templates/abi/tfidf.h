/* Parameters of tfidf.cu. */
#ifndef ZC_ABI_TFIDF_H
#define ZC_ABI_TFIDF_H

struct zc_tfidf_params {
    const void *in; /* [rows, width] */
    void *out;      /* [rows, columns] of f32, all 0 */
    long long rows, width, columns;
};

#endif
