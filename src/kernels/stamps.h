/* Kernels that note when they run, for profiles of graphs: the same sources with ZC_STAMPED
 * (templates/zc/device.cuh) and a zc_stamp at the beginning of every entry, which then has a second
 * parameter. */
#ifndef ZC_KERNELS_STAMPS_H
#define ZC_KERNELS_STAMPS_H

#include "planfile/program.h"

/* Of a step, as the device has it, in nanoseconds: when its first kernel began, when those in front
 * of that had ended, and, where no kernel comes next, when its own had. */
#define ZC_STAMP_NONE UINT64_MAX
typedef struct zc_stamps {
    uint64_t begin, ready, end;
} zc_stamps;
/* The kernel that notes an end, in every module: the only parameter is zc_stamps *. */
#define ZC_STAMP_ENTRY "zc_stamp_end"

/* When the kernels of the first of n steps had ended; ZC_STAMP_NONE: none ran. */
uint64_t zc_stamps_end(const zc_stamps *s, size_t n);

/* The program's sources so, in the arena; an error where they are not this zc's own, or none. */
zc_status zc_stamped_sources(const zc_program *p, zc_arena *arena, const zc_psource **out,
                             zc_diag *diag);

#endif
