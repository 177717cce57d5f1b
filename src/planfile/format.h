/* The plan file's layout: docs/planfile.md in C. Little-endian, fixed-size records, no pointers, no
 * recursion. The reader (read.c) trusts none of it; the writer (write.c) is deterministic.
 *
 *   header | section table | sections, each at a multiple of ZC_PLAN_ALIGN, zero bytes between
 *
 * The constants come first: they are written while the kernels are compiled.
 *
 * The header's hash covers the header (with the hash itself zero) and the section table, which
 * holds every section's hash: together they cover every byte but the padding, which must be zero.
 */
#ifndef ZC_PLANFILE_FORMAT_H
#define ZC_PLANFILE_FORMAT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "plans are read in place: little-endian only");

#define ZC_PLAN_MAGIC      "\x89ZCP\r\n\x1a\n"
#define ZC_PLAN_MAJOR      8 /* a reader refuses another */
#define ZC_PLAN_MINOR      0
#define ZC_PLAN_ALIGN      256
#define ZC_PLAN_DATA_ALIGN 64 /* of each constant */
#define ZC_PLAN_SHA        32
/* Most blocks inside one another. */
#define ZC_PLAN_DEPTH_MAX 32

typedef struct zc_plan_header {
    char magic[8];
    uint16_t major, minor;
    uint32_t section_count;
    uint64_t file_size;
    char zc_version[32]; /* that wrote it, NUL-padded */
    uint8_t sha256[ZC_PLAN_SHA];
    uint8_t reserved[168]; /* zero */
} zc_plan_header;
_Static_assert(sizeof(zc_plan_header) == 256, "header size");

typedef struct zc_plan_section {
    uint32_t kind, reserved;
    uint64_t offset, length;
    uint8_t sha256[ZC_PLAN_SHA];
} zc_plan_section;
_Static_assert(sizeof(zc_plan_section) == 56, "section entry size");

/* Sections in file order, all present: name, record type. References: STRS by byte offset, others
 * by record index. */
#define ZC_PLAN_SECTIONS(X)                                                                        \
    X(DATA, char)          /* constants */                                                         \
    X(META, zc_plan_meta)  /* one record */                                                        \
    X(STRS, char)          /* NUL-terminated UTF-8 */                                              \
    X(DIMS, zc_plan_dim)   /* dimension expressions */                                             \
    X(DREF, zc_plan_dref)  /* dimensions */                                                        \
    X(VALS, zc_plan_value) /* values; 0 is the absent one */                                       \
    X(STEP, zc_plan_step)                                                                          \
    X(BLKS, zc_plan_block) /* 0 is the program */                                                  \
    X(REFS, uint32_t)      /* lists of value, step, block indices and of strings */                \
    X(ATTR, zc_plan_attr)                                                                          \
    X(INTS, int64_t)                                                                               \
    X(FLTS, float)                                                                                 \
    X(KERN, zc_plan_kernel) /* GPU kernels */                                                      \
    X(BINS, zc_plan_binary) /* their machine code */                                               \
    X(SRCS, zc_plan_source) /* what they are compiled from */                                      \
    X(CHOI, zc_plan_choice) /* which kernel serves a step where */                                 \
    X(RANG, zc_plan_range)  /* sizes for which a choice holds */                                   \
    X(CODE, char)           /* bytes of the machine code */

enum {
#define X(name, type) ZC_PLAN_##name,
    ZC_PLAN_SECTIONS(X)
#undef X
        ZC_PLAN_SECTION_COUNT
};

typedef struct zc_plan_list {
    uint32_t first, count;
} zc_plan_list;

enum { ZC_PLAN_TF32 = 1 }; /* products may round: of META all, of STEP this one */

typedef struct zc_plan_meta {
    uint32_t model_name, version, target; /* strings */
    uint32_t flags;                       /* ZC_PLAN_TF32 */
    uint8_t model_sha256[ZC_PLAN_SHA];
    zc_plan_list input_names, output_names; /* strings in REFS */
    /* Of the model's own: strings, and keys and values in turn in REFS. */
    uint32_t producer, producer_version, domain, doc;
    int64_t model_version;
    zc_plan_list pairs;
    zc_plan_list precision; /* strings in REFS: lines that tell how types were chosen */
} zc_plan_meta;
_Static_assert(sizeof(zc_plan_meta) == 104, "meta size");

typedef struct zc_plan_dref {
    int64_t k;
    uint32_t e, reserved;
} zc_plan_dref;
_Static_assert(sizeof(zc_plan_dref) == 16, "dimension size");

typedef struct zc_plan_dim {
    uint32_t kind, is_input;
    uint32_t name, reserved; /* SYM */
    zc_plan_dref a, b;
} zc_plan_dim;
_Static_assert(sizeof(zc_plan_dim) == 48, "dimension expression size");

typedef struct zc_plan_value {
    uint32_t kind, name, dtype;
    int32_t rank;
    uint32_t dims, reserved; /* first in DREF */
    uint64_t offset, length; /* CONST: in DATA */
} zc_plan_value;
_Static_assert(sizeof(zc_plan_value) == 40, "value size");

typedef struct zc_plan_step {
    uint32_t op, name; /* strings */
    zc_plan_list in, out, blocks, prov, attrs;
    zc_plan_list choices;
    uint32_t why, flags; /* string; ZC_PLAN_TF32 */
} zc_plan_step;
_Static_assert(sizeof(zc_plan_step) == 64, "step size");

typedef struct zc_plan_choice {
    uint32_t arch, kernel;
    zc_plan_list ranges;
    zc_plan_list literals;  /* in FLTS */
    uint32_t why, reserved; /* string */
} zc_plan_choice;
_Static_assert(sizeof(zc_plan_choice) == 32, "choice size");

typedef struct zc_plan_range {
    zc_plan_list factors; /* in DREF */
    int64_t low, high;
} zc_plan_range;
_Static_assert(sizeof(zc_plan_range) == 24, "range size");

typedef struct zc_plan_kernel {
    uint32_t family, template_name, name, spec; /* strings */
    uint32_t is_static, threads, smem, cluster;
    zc_plan_list config; /* in INTS */
    uint64_t abi;
    uint32_t products, pitched; /* string; ZC_PITCHED_... */
} zc_plan_kernel;
_Static_assert(sizeof(zc_plan_kernel) == 56, "kernel size");

typedef struct zc_plan_binary {
    uint32_t kernel, arch;
    uint64_t offset, length; /* in CODE */
} zc_plan_binary;
_Static_assert(sizeof(zc_plan_binary) == 24, "machine code size");

typedef struct zc_plan_source {
    uint32_t name, text; /* strings */
} zc_plan_source;
_Static_assert(sizeof(zc_plan_source) == 8, "source size");

typedef struct zc_plan_block {
    zc_plan_list params, steps, outs;
} zc_plan_block;
_Static_assert(sizeof(zc_plan_block) == 24, "block size");

typedef struct zc_plan_attr {
    uint32_t name, kind;
    zc_plan_list list; /* INTS, FLOATS; STR: first is the string; TENSOR: first is a value */
    int64_t i;         /* INT, DTYPE */
    float f;           /* FLOAT */
    uint32_t reserved;
} zc_plan_attr;
_Static_assert(sizeof(zc_plan_attr) == 32, "attribute size");

#endif
