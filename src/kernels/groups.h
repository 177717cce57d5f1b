/* Host side of abi/groups.h: from axes to groups, from groups to threads and blocks. */
#ifndef ZC_KERNELS_GROUPS_H
#define ZC_KERNELS_GROUPS_H

#include <string.h>

#include "abi/groups.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* With these the configuration of a family that walks groups begins; templates/zc/groups.cuh says
 * what they are. */
#define ZC_GROUPS_CONFIG "vector", "axes", "lanes", "split"
enum { ZC_GROUPS_VECTOR, ZC_GROUPS_AXES, ZC_GROUPS_LANES, ZC_GROUPS_SPLIT };

/* Chooses it for x of these dimensions, those with mask[axis] reduced, of elements of `bytes`.
 * may_split: among blocks, too, where there are few outputs. */
void zc_gen_groups(zc_gen *g, int rank, const zc_dim *dims, const bool *mask, unsigned bytes,
                   bool may_split);

/* The groups of x's axes, those with mask[axis] reduced. */
void zc_groups_of(const zc_tensor *x, const bool mask[ZC_MAX_RANK], struct zc_groups *g);
/* Shares elements of `bytes` among threads, as was chosen. Returns the grid; y is the number of
 * splits. */
zc_dim3 zc_groups_plan(const zc_launch *l, struct zc_groups *g, unsigned bytes);
/* An axis attribute in [-rank, rank) brought to [0, rank); the shape function has checked it. */
static inline int zc_launch_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

#endif
