/* Kernels that note when they run, for profiles of graphs: the same sources with a zc_stamp
 * (templates/zc/device.cuh) at the beginning of every entry, which then has a second parameter. */
#ifndef ZC_KERNELS_STAMPS_H
#define ZC_KERNELS_STAMPS_H

#include "planfile/program.h"

/* As the device has it: nanoseconds; all bits set where nothing ran. */
enum { ZC_STAMP_PLACES = 256 };
typedef struct zc_stamps {
    uint64_t begin, end[ZC_STAMP_PLACES];
} zc_stamps;

/* When the first began and the last ended; false: none ran. */
bool zc_stamps_read(const zc_stamps *s, uint64_t *begin, uint64_t *end);

/* The program's sources so, in the arena; an error where they are not this zc's own, or none. */
zc_status zc_stamped_sources(const zc_program *p, zc_arena *arena, const zc_psource **out,
                             zc_diag *diag);

#endif
