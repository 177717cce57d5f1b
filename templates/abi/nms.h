/* Parameters of nms.cu. A segment is one class of one batch entry: its n boxes, and a list of
 * `list` of their numbers.
 */
#ifndef ZC_ABI_NMS_H
#define ZC_ABI_NMS_H

enum { ZC_NMS_CHUNK = 2048 };

struct zc_nms_params {
    const void *boxes, *scores;
    long long segments, classes, n;
    long long chunks, list;  /* chunks of a segment; list: chunks * ZC_NMS_CHUNK */
    long long run;           /* of the lists, sorted already */
    unsigned int *from, *to; /* lists: box numbers by score */
    unsigned char *gone;     /* of each place of a list: suppressed */
    unsigned int *kept;      /* `most` for each segment */
    long long *counts;       /* of each segment, and one more; scanned */
    long long most;
    long long *out;
    float iou, least; /* a box needs a score above `least` when by_score */
    int by_score, pad;
};

#endif
