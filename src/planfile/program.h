/* A program: what a plan file says, as the runtime uses it.
 *
 * Values, steps and blocks are arrays by index; index 0 of values means "absent". Block 0 is the
 * whole program. Steps of a block stand in execution order. The plan builder (compiler) fills one
 * from a graph, write.c turns it into bytes, read.c verifies bytes and turns them into one. */
#ifndef ZC_PLANFILE_PROGRAM_H
#define ZC_PLANFILE_PROGRAM_H

#include "base/origin.h"
#include "op/infer.h"

typedef enum zc_pkind {
    ZC_P_ABSENT = 0, /* index 0 only */
    ZC_P_INPUT,      /* a program input */
    ZC_P_PARAM,      /* a parameter of a block other than 0 */
    ZC_P_CONST,
    ZC_P_STEP /* made by a step */
} zc_pkind;

typedef struct zc_pvalue {
    zc_pkind kind;
    const char *name;
    zc_dtype dtype;
    int rank;                     /* -1: known only when run */
    const zc_dim *dims;           /* refer to zc_program.dim_nodes */
    const char *const *dim_texts; /* of inputs and outputs: the dimensions as text; else NULL */
    bool planned;                 /* of block 0, and its size follows from the input shapes */
    const void *data;             /* CONST */
    uint64_t bytes;               /* CONST */
} zc_pvalue;

typedef struct zc_pstep {
    zc_op op;
    const void *attrs; /* zc_attrs_<op>; its TENSOR fields point into the program */
    uint32_t nin, nout, nblocks, nprov;
    const uint32_t *in, *out, *blocks; /* value and block indices */
    const char *name;
    const char *const *prov; /* names of the ONNX nodes it stands for */
    /* The kernels that serve it on a GPU: of each architecture the first whose ranges hold, and the
     * last has none. Without any it runs on the CPU. */
    uint32_t nchoices;
    const struct zc_pchoice *choices;
    const char *why; /* of a GPU program's CPU step: the reason; else "" */
    bool tf32;       /* a product that may round f32 factors to tf32, whatever the program says */
} zc_pstep;

/* Why a GPU program's step runs on the CPU by design: it computes what the host needs to launch
 * others. */
#define ZC_WHY_SHAPES "computes shapes"

/* low <= product of the factors <= high. */
enum { ZC_RANGE_FACTORS = 8 };
typedef struct zc_prange {
    uint32_t nfactors;
    const zc_dim *factors;
    int64_t low, high;
} zc_prange;

enum { ZC_LITERALS = 8 };

typedef struct zc_pchoice {
    uint32_t arch;   /* 90 for sm_90 */
    uint32_t kernel; /* index */
    uint32_t nranges;
    const zc_prange *ranges; /* all have to hold */
    uint32_t nliterals;      /* ZC_LITERALS at most */
    const float *literals; /* numbers of fused work that the kernel is launched with, so that steps
                              with other numbers share it */
    const char *why;       /* what else there was, and its cost; "" where there was nothing else */
} zc_pchoice;

/* Operands that a kernel takes with a pitch: lines of their last axis lie further apart than they
 * are long, as channels of a larger tensor do. Bit i: input i. */
enum {
    ZC_PITCHED_INPUTS = 29, /* that have a bit; of others, all or none */
    ZC_PITCHED_INPUT = 1,
    ZC_PITCHED_RESULTS = 1 << ZC_PITCHED_INPUTS,
    ZC_PITCHED_ALL = (1 << (ZC_PITCHED_INPUTS + 1)) - 1
};

/* A specialised GPU kernel: a template with its specialisation header. */
typedef struct zc_pkernel {
    const char *family;        /* of the kernel table */
    const char *template_name; /* the source that is compiled */
    const char *name;          /* its entry points are <name>_0, <name>_1 ... */
    const char *products;      /* the tensor cores' instruction and the type of its factors,
                                  "wgmma.f16"; "": they are the ordinary cores' */
    const char *spec;          /* text of "spec.h" */
    bool is_static;            /* shapes are constants in it */
    uint64_t abi;              /* of its parameters: kernels/table.h */
    uint32_t pitched;          /* ZC_PITCHED_...: may have a pitch */
    /* Of a family that is configured: a block's threads and bytes of dynamic shared memory, the
     * blocks of a cluster, and the numbers that the family's list names. Else 0, 0, 1 and which
     * entries it has: kernels/entries.h. */
    uint32_t threads, smem, cluster, nconfig;
    const int64_t *config;
} zc_pkernel;

/* Machine code of one kernel for one architecture. */
typedef struct zc_pbinary {
    uint32_t kernel; /* index */
    uint32_t arch;   /* 90 for sm_90 */
    const void *data;
    uint64_t bytes;
} zc_pbinary;

/* A source file that kernels are compiled from. */
typedef struct zc_psource {
    const char *name, *text;
} zc_psource;

typedef struct zc_pblock {
    uint32_t nparams, nsteps, nouts;
    const uint32_t *params, *steps, *outs;
} zc_pblock;

typedef struct zc_program {
    const char *model_name, *version, *target;
    uint8_t model_sha256[32];
    zc_origin origin;
    bool tf32; /* of a GPU program: may products round f32 factors to tf32? */
    uint32_t nprecision;
    const char *const *precision; /* lines that tell how types were chosen; may be none */
    uint32_t ndims, nvalues, nsteps, nblocks, nkernels, nbinaries, nsources;
    const zc_dim_node *dim_nodes;
    const zc_pvalue *values;
    const zc_pstep *steps;
    const zc_pblock *blocks;
    const zc_pkernel *kernels; /* of a GPU program */
    const zc_pbinary *binaries;
    const zc_psource *sources;       /* may be stripped: none */
    const char *const *input_names;  /* of blocks[0].params */
    const char *const *output_names; /* of blocks[0].outs */
} zc_program;

/* Where the bytes of a plan file go: behind those that are there, or in place of some of these. */
typedef struct zc_sink {
    zc_status (*append)(void *user, const void *data, size_t len, zc_diag *diag);
    zc_status (*overwrite)(void *user, const void *data, size_t len, uint64_t at, zc_diag *diag);
    void *user;
} zc_sink;
zc_sink zc_sink_to_buffer(zc_buf *out);

/* The plan file: equal programs have equal bytes. */
zc_status zc_program_write(const zc_program *p, const zc_sink *sink, zc_diag *diag);
/* The same by parts: the constants, which are there before the machine code, and whose hash it
 * sets; then all else. */
zc_status zc_program_write_constants(const zc_program *p, const zc_sink *sink, uint8_t sha256[32],
                                     zc_diag *diag);
zc_status zc_program_write_rest(const zc_program *p, const uint8_t constants_sha256[32],
                                const zc_sink *sink, zc_diag *diag);

/* Verifies [data, data+len) completely (hashes, ranges, ids, order, types) before using any of it.
 * The program lives in `arena`; strings and constants point into data, which must be aligned to 64
 * and outlive it. */
zc_status zc_program_read(const uint8_t *data, size_t len, zc_arena *arena, zc_program *out,
                          zc_diag *diag);

/* The last of reading, which a program that was never written needs, too: checks what must hold
 * between records, and fills what follows from them. */
zc_status zc_program_complete(zc_program *p, zc_arena *arena, zc_diag *diag);

/* Which of the step's choices holds for these values of the dimension expressions; NULL: none of
 * this architecture. */
const zc_pchoice *zc_program_choice(const zc_pstep *step, uint32_t arch, const int64_t *dim_values);
/* Does any step of the program choose the kernel on this architecture? */
bool zc_program_uses(const zc_program *p, uint32_t kernel, uint32_t arch);

/* The first architecture that it has kernels for, 90 for sm_90; 0: it is for the CPU alone. */
int zc_program_arch(const zc_program *p);

/* Does the file begin as a plan of any version? */
bool zc_program_magic(const uint8_t *data, size_t len);

#endif
