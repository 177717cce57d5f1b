/* Parameters of rotary.cu. */
#ifndef ZC_ABI_ROTARY_H
#define ZC_ABI_ROTARY_H

struct zc_rotary_params {
    const void *x, *cos, *sin, *ids;
    void *y;
    struct zc_fault_word *fault;
    long long total; /* pairs and single elements of all heads: batch * length * heads * slots */
    long long heads, length, size;             /* size: elements a head */
    long long half, rows;                      /* pairs that are turned; rows of the tables */
    long long batch_step, head_step, pos_step; /* in elements, of x and y */
    int id_mode; /* 0: table row s, of each sequence its own; 1: ids[b][s]; 2: ids[0] + s; 3: s */
    unsigned step;
};

#endif
