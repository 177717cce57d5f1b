/* The configuration of families that name none: which entries of its template a kernel has.
 *
 * Where all that the launch function looks at is certain, it is asked at compile time which entries
 * it issues, on an architecture's usual number of multiprocessors: the kernel has these, and the
 * launch function counts with that number. Else it has all. */
#ifndef ZC_KERNELS_ENTRIES_H
#define ZC_KERNELS_ENTRIES_H

#include "kernels/gen.h"

extern const char *const zc_config_entries[]; /* a bit an entry, 0: all; multiprocessors */

/* Does nothing for a family that names a configuration of its own. */
void zc_gen_entries(zc_gen *g, int family);
/* The multiprocessors that a kernel's entries were chosen for; 0: any number. */
int zc_entries_processors(int family, const int64_t *config);

#endif
