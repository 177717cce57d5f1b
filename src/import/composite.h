/* Values of the model that are no tensors: sequences and optionals.
 *
 * The graph knows tensors alone. A composite is a list of them that is known while the model is
 * imported; operators that work on one work on the list, and leave no trace in the graph. Its id
 * goes wherever that of a tensor goes in the importer: iop rows marked COMPOSITE take it, others
 * never see one. A composite among the graph's inputs or outputs is its tensors, named NAME/0,
 * NAME/1 and so on; the length of an input is the dimension NAME/length, which must be fixed. An
 * optional input is there unless the dimension NAME/present is fixed as 0. */
#ifndef ZC_IMPORT_COMPOSITE_H
#define ZC_IMPORT_COMPOSITE_H

#include "import/importer.h"

/* Tensors in one sequence, and in all of them: a sequence that grows in a loop is a new one each
 * time. */
#define ZC_SEQUENCE_MAX       ((int64_t)65536)
#define ZC_SEQUENCE_TOTAL_MAX ((size_t)1 << 24)

/* Set in the id of a composite; no graph has so many values. */
#define ZC_COMPOSITE_BIT ((zc_vid)1 << 31)

static inline bool zc_is_composite(zc_vid v)
{
    return (v & ZC_COMPOSITE_BIT) != 0;
}

/* Valid until the next composite is made; its items as long as the import. */
const zc_composite *zc_composite_of(const zc_imp *im, zc_vid v);
/* NULL for a tensor, else "a sequence" or "an optional". */
const char *zc_composite_kind(const zc_imp *im, zc_vid v);

/* A sequence of tensors of one type; the items are copied. dtype: of an empty one, or ZC_NONE. */
zc_vid zc_sequence(zc_imp *im, zc_inode *n, const zc_vid *items, int64_t count, zc_dtype dtype);
/* An optional that holds `item`, a tensor or a sequence, or nothing (0). */
zc_vid zc_optional(zc_imp *im, zc_inode *n, zc_vid item);

/* The tensors that v, which may be a tensor, stands for, are appended to *out. */
zc_status zc_composite_flatten(zc_imp *im, zc_vid v, zc_vids *out);
size_t zc_composite_width(const zc_imp *im, zc_vid v);
/* Appends what tensor i of those that `name` stands for is called. */
void zc_composite_name(const zc_imp *im, zc_vid v, const char *name, size_t i, zc_buf *out);
/* Are both tensors, or composites of as many tensors in the same form? */
bool zc_composite_alike(const zc_imp *im, zc_vid a, zc_vid b);
/* The same form with tensors from *next on in place of its own. */
zc_vid zc_composite_like(zc_imp *im, zc_inode *n, zc_vid form, const zc_vid **next);

/* The tensors as one along a new axis. */
zc_vid zc_stack(zc_imp *im, zc_inode *n, const zc_vid *items, int count, int64_t axis);
/* What stands before the names of iteration i of a body that is unrolled. */
const char *zc_iteration_prefix(zc_imp *im, zc_inode *n, int64_t i);

/* Fails when one of them is a composite. what: "input" or "output". */
zc_status zc_need_tensors(zc_imp *im, zc_inode *n, const zc_vid *v, size_t count, const char *what);

/* ---- the graph's inputs ---- */

bool zc_type_is_composite(const Onnx__TypeProto *type);
/* NULL, or why no composite of that type can be. */
const char *zc_composite_unsupported(const Onnx__TypeProto *type);
/* Notes the names of the dimensions that say how many tensors an input is. */
zc_status zc_composite_symbols(zc_imp *im, const Onnx__ValueInfoProto *info);
/* How many tensors the input is. */
zc_status zc_composite_count(zc_imp *im, const Onnx__ValueInfoProto *info, size_t *out);
/* Is `name` that of a tensor of some sequence among the inputs? */
zc_status zc_composite_has_item(zc_imp *im, const char *name, bool *out);
/* Makes it, with `add` for each tensor. */
typedef zc_status (*zc_add_input_fn)(zc_imp *im, const Onnx__ValueInfoProto *info, zc_vid *out);
zc_status zc_composite_input(zc_imp *im, const Onnx__ValueInfoProto *info, zc_add_input_fn add,
                             zc_vid *out);

#endif
