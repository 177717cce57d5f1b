/* Parameters of affine_grid.cu. */
#ifndef ZC_ABI_AFFINE_GRID_H
#define ZC_ABI_AFFINE_GRID_H

enum { ZC_AFFINE_AXES = 3 };

struct zc_affine_grid_params {
    const void *theta;
    void *out;
    long long total, points;        /* of all images, of one */
    long long size[ZC_AFFINE_AXES]; /* the last axis first */
};

#endif
