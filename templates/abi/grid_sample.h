/* Parameters of grid_sample.cu: always three spatial axes, the leading ones of size 1 where there
 * are fewer. */
#ifndef ZC_ABI_GRID_SAMPLE_H
#define ZC_ABI_GRID_SAMPLE_H

enum { ZC_GRID_AXES = 3 };

struct zc_grid_sample_params {
    const void *in, *grid;
    void *out;
    long long batch, channels, plane,
        points;                    /* elements of an input plane, points of an image of the grid */
    int size[ZC_GRID_AXES], chunk; /* of the input; channels a thread computes */
};

#endif
