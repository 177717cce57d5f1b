/* What steps for quantised operators share. */
#ifndef ZC_IMPORT_QUANT_H
#define ZC_IMPORT_QUANT_H

#include "import/importer.h"

/* The last node of a x b of integers as a float: times both scales, plus a bias, which may be left
 * out. in: a, b, their zero points. */
zc_nid zc_quant_product(zc_imp *im, zc_inode *n, const zc_vid in[4], zc_vid a_scale, zc_vid b_scale,
                        zc_vid bias);

#endif
