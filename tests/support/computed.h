/* Models in lines of text (onnx_text.h) whose results, or whose errors, are known. Include cmocka.h
 * and what it needs before. */
#ifndef ZC_TESTS_COMPUTED_H
#define ZC_TESTS_COMPUTED_H

#include "import/import.h"

typedef struct computed {
    const char *lines; /* without operator sets and outputs, which are y0, y1, ... */
    const char *want;  /* elements of y0; y1; ... */
} computed;

typedef struct refused {
    const char *lines; /* without operator sets */
    const char *why;   /* is part of the error */
} refused;

/* Imports the lines behind a header. */
zc_status import_lines(const char *header, const char *lines, zc_graph **g, zc_diag *diag);
/* Computes each with the reference kernels and with the fast ones. */
void expect_computed(const computed *cases, size_t n);
void expect_refused(const refused *cases, size_t n);

#endif
