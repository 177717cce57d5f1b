/* Results with all passes against results without any.
 *
 * Without is the graph as it was read, by the reference kernels; the same in f64 is the truth. With
 * passes a result may be off by twice what it is without, plus some units of its type at the size
 * of the output's greatest element, plus what inputs and intermediate results would do to it that
 * are wrong by some units of their type: the kernel check's bounds, for whole graphs. On the CPU
 * several threads give the bits that one gives. */
#ifndef ZC_TESTS_ON_OFF_H
#define ZC_TESTS_ON_OFF_H

#include "rules/rules.h"

enum { ON_OFF_IO_MAX = 32 };

typedef struct on_off {
    const char *name;
    const char *text; /* of a graph; NULL: name is the path of a model */
    zc_dtype real;    /* what becomes f64 in the truth */
    bool on_gpu;
    const zc_rules *rules; /* NULL: the built-in ones */
} on_off;

typedef struct on_off_run {
    bool ran;   /* does the graph take that size without passes? */
    bool sized; /* has it symbols, so that another size is another run? */
} on_off_run;

/* Every symbol is `size`. false: it failed, and why is printed. Counts into *outputs; *worst: the
 * greatest error, of an output's greatest element. */
bool on_off_check(const on_off *s, int64_t size, on_off_run *run, size_t *outputs, double *worst);

#endif
