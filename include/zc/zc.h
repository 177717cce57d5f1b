/* The compiler: ONNX model in, plan out. Library: libzc (which brings libzc_rt).
 *
 * Calls are independent: any number may run at once in different threads, each with its own
 * zc_diag. */
#ifndef ZC_H
#define ZC_H

#include <stdbool.h>

#include "zc/custom.h"
#include "zc/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A symbolic dimension fixed at compile time: by its name, or that of a sequence input's length,
 * "NAME/length", or "NAME/present" (0 or 1) of an optional input. */
typedef struct zc_fixed_dim {
    const char *name;
    int64_t value;
} zc_fixed_dim;

/* An input whose whole shape is fixed at compile time. */
typedef struct zc_fixed_shape {
    const char *input;
    int rank;
    int64_t dims[ZC_RANK_MAX];
} zc_fixed_shape;

/* Sizes of a symbolic input dimension that get GPU kernels of their own, beside those for any size.
 */
typedef struct zc_profile {
    const char *name;
    const int64_t *values;
    size_t count;
} zc_profile;

typedef struct zc_compile_params {
    size_t size;           /* sizeof(zc_compile_params); set by the macro below */
    const char *data_root; /* directory of external weights; NULL: the model file's */
    const zc_fixed_dim *dims;
    size_t dim_count;
    const zc_fixed_shape *shapes;
    size_t shape_count;
    const char *const
        *skip_passes; /* names of optional passes to leave out; "all" leaves out all */
    size_t skip_pass_count;
    /* What to compile for: "cpu", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", or
     * "native" for this machine's first GPU. Any GPU target gives a plan that runs on GPUs of the
     * targets named and on the CPU; it needs NVRTC but no GPU. None: "cpu". */
    const char *const *targets;
    size_t target_count;
    const zc_profile *profiles; /* every combination of their sizes becomes a variant, at most 64 */
    size_t profile_count;
    bool strip_sources; /* leave out the kernels' sources: the plan cannot be built for other GPUs
                           when loaded */
    const char *emit_cuda; /* a directory that gets the kernels' readable sources; may be NULL */
    /* "auto": every part of the model has the cheapest type with which the bound max_error holds
     * (below). "f16" or "bf16": weights and intermediate results have that type where it is safe,
     * and sums are f32; inputs and outputs keep theirs. "tf32": all types stay, and matrix products
     * of f32 on a GPU round their factors to 11 significant digits. NULL or "f32": exactly as the
     * model says. */
    const char *precision;
    int threads;              /* for compiling kernels; 0: one a CPU */
    const char *const *rules; /* files of fusion rules (docs/rules.md), beside the built-in ones */
    size_t rule_count;
    const char *const *skip_rules; /* names of rules to leave out */
    size_t skip_rule_count;
    bool force_rules; /* check no rule by numbers: for tools that look for a wrong one. A rule that
                         is to be used as it is says so itself (`unchecked`, docs/rules.md) */
    bool tune;        /* measure kernels on this machine's first GPU, and take those that make runs
                         fastest; needs a GPU among the targets (docs/tuning.md) */
    bool strict; /* refuse a model that declares a type which contradicts the inferred one; else
                    that is a warning in the diagnostics of a call that succeeds */
    uint64_t max_memory; /* budget in bytes for importing; 0: 64 GiB */
    /* Called between stages; done and total count stages. Return false to cancel. May be NULL. */
    bool (*progress)(void *user, const char *stage, size_t done, size_t total);
    void *progress_user;
    /* A file of measurements, to which `tune` adds its own; without `tune` it has to be there.
     * NULL: those alone that zc brings along. */
    const char *tuned;
    double tune_seconds; /* the most that measuring takes, compiling not counted; 0: 60 */
    bool tune_again;     /* also what the measurements have already */
    bool by_cost;        /* use no measurements */
    /* Operators of the caller's that the model may use (zc/custom.h). */
    const zc_custom_op *const *custom_ops;
    size_t custom_op_count;
    bool offered; /* also fusions and kernels that have not been measured on a GPU yet, for who
                     measures them */
    /* With precision "auto": the most that an output may differ from the model's in f32, by the
     * greatest difference of its elements relative to its greatest magnitude; more than 0. On
     * the samples half of it is kept, as other inputs have other errors. ZC_ERR_ACCURACY: f32 does
     * not keep it either. */
    double max_error;
    /* "int4", "fp4", "w8", "int8", "fp8", "f16", "bf16", "tf32": the types that may be chosen
     * beside f32. NULL: all that are known to be faster on the targets; for the CPU alone that is
     * none. The first five only where they are named: of int4, fp4 and w8 the constant weights
     * alone have 4 and 8 bits, of int8 and fp8 the other factors as well, whose scales are of the
     * samples. */
    const char *const *allow;
    size_t allow_count;
    /* Values of all inputs, in order, for each of sample_count runs, which errors are measured on:
     * sample k's input i is samples[k * inputs + i]. At least one run. */
    const zc_view *samples;
    size_t sample_count;
    /* A file that gets the front of time, memory and error among what was measured; NULL: none. */
    const char *pareto;
    int tune_alternatives; /* configurations of each family that are measured, the best by cost, and
                              the times of all are told; 0: 16, and what was found is */
    /* Weights along the summed axis that share a scale where they are int4 or w8: 32, 64 or 128,
     * which has to divide every sum of a part that may have these types; 0: of each part what is
     * best. */
    int64_t weight_group;
    /* A file of `zc calibrate` for this model, whose thresholds are the ranges of int8 and fp8:
     * of activations, and of channels of weights. NULL: what the samples show, and the greatest
     * weights. */
    const char *calibration;
    /* "2:4": with precision "auto", products of constant weights of which the two least of each
     * four along the summed axis are 0 may be chosen, too, where a target multiplies such faster:
     * those with which max_error holds. NULL: weights are what they are. Those that have such zeros
     * need no leave. */
    const char *sparsify;
} zc_compile_params;
#define ZC_COMPILE_PARAMS(...) ZC_PARAMS(zc_compile_params, __VA_ARGS__)

/* Compiles the model file to a plan file. The file appears complete or not at all; an existing one
 * is replaced only on success. params may be NULL. For the CPU alone, operations that will run on
 * slow reference kernels are warnings in the diagnostics of a call that succeeds. */
ZC_API zc_status zc_compile_file(const char *model_path, const char *plan_path,
                                 const zc_compile_params *params, zc_diag *diag);
/* Compiles to memory: *out is malloc'd and freed by zc_free. External weights need data_root. */
ZC_API zc_status zc_compile_bytes(const void *model, size_t model_len,
                                  const zc_compile_params *params, void **out, size_t *out_len,
                                  zc_diag *diag);
/* Frees what zc_compile_bytes gave; NULL is accepted. */
ZC_API void zc_free(void *p);

#ifdef __cplusplus
}
#endif
#endif
