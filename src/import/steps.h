/* Every step that onnx_ops.def names. */
#ifndef ZC_IMPORT_STEPS_H
#define ZC_IMPORT_STEPS_H

#include "import/importer.h"

/* Several rows may name one step: repeating a declaration is allowed. */
#define STEP(domain, op_type, below, fn) zc_status zc_step_##fn(zc_imp *im, zc_inode *n);
#define BUILD(domain, op_type, fn)       zc_status zc_step_##fn(zc_imp *im, zc_inode *n);
#include "import/onnx_ops.def"

#endif
