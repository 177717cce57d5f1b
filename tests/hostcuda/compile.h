/* From a kernel's source to a shared object. */
#ifndef ZC_HOSTCUDA_COMPILE_H
#define ZC_HOSTCUDA_COMPILE_H

#include "cuda_types.h"
#include <stdbool.h>

#define HC_MAX_DEFINES 64

typedef struct hc_define {
    char letter; /* D or U */
    const char *text;
} hc_define;

typedef struct hc_header {
    char *name, *text;
} hc_header;

typedef struct hc_source {
    char *text, *name;
    hc_header *headers;
    int header_count;
    int arch;
    bool machine_code; /* sm_..., not compute_... */
    hc_define defines[HC_MAX_DEFINES];
    int define_count;
} hc_source;

typedef struct hc_compiled {
    char *log;   /* the compiler's words, NULL without */
    char *image; /* the shared object */
    size_t size;
} hc_compiled;

/* An NVRTC result. */
hc_result hc_compile(const hc_source *s, hc_compiled *out);

#endif
