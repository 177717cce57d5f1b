/* Host side of abi/groups.h: from axes to groups, from groups to threads and blocks. */
#ifndef ZC_KERNELS_GROUPS_H
#define ZC_KERNELS_GROUPS_H

#include <string.h>

#include "abi/groups.h"
#include "kernels/launch.h"

/* The groups of x's axes, those with mask[axis] reduced. */
void zc_groups_of(const zc_tensor *x, const bool mask[ZC_MAX_RANK], struct zc_groups *g);
/* Shares the elements among threads; may_split: among blocks, too, where there are few outputs.
 * `data` is what is walked, in elements of `bytes`. Returns the grid; y is the number of splits. */
zc_dim3 zc_groups_plan(const zc_launch *l, struct zc_groups *g, const void *data, unsigned bytes,
                       bool may_split);
/* The groups of [outputs, count] rows without a gap. */
void zc_groups_rows(int64_t outputs, int64_t count, struct zc_groups *g);
/* An axis attribute in [-rank, rank) brought to [0, rank); the shape function has checked it. */
static inline int zc_launch_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

#endif
