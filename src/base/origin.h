/* What a model says of itself: it goes from the model to the plan as it is. */
#ifndef ZC_BASE_ORIGIN_H
#define ZC_BASE_ORIGIN_H

#include <stdint.h>

/* No text is NULL; "" where the model says nothing. */
typedef struct zc_origin {
    const char *producer, *producer_version, *domain, *doc;
    int64_t version;
    uint32_t npairs;
    const char *const *pairs; /* a key and its value in turn */
} zc_origin;

#endif
