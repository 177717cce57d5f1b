/* Issuing one step on the device: what a family's launch function sees.
 *
 * A launch function computes grid, block and parameters from concrete shapes and issues one kernel
 * or more, in order, on the session's stream. It runs once when memory is planned (dry: nothing is
 * issued, scratch is measured), and again whenever a run or a capture issues the step; it must do
 * the same each time. It never allocates and never waits, except in operations whose result's shape
 * depends on values (ZC_OPF_DYNAMIC). */
#ifndef ZC_KERNELS_LAUNCH_H
#define ZC_KERNELS_LAUNCH_H

#include "abi/epilogue.h"
#include "abi/tensor_map.h"
#include "kernels/collapse.h"
#include "op/infer.h"

/* Where kernels report what only the device sees (an index out of range): the first report of a run
 * wins. templates/zc/device.cuh has the same struct. */
enum { ZC_FAULT_NONE, ZC_FAULT_INDEX, ZC_FAULT_VALUE };

typedef struct zc_fault_word {
    uint32_t step; /* 1 + index of the step; 0: no fault */
    uint32_t code; /* zc_fault_code */
    long long got, low, high;
} zc_fault_word;

typedef struct zc_dim3 {
    uint32_t x, y, z;
} zc_dim3;

typedef struct zc_launch {
    zc_op op;
    const zc_op_info *info;
    const void *attrs; /* zc_attrs_<op> */
    int nin, nout;
    /* Concrete types; data is DEVICE memory (any non-NULL address when dry). in[i] of an operand
     * that the host alone needs may have data NULL. Absent operands have dtype ZC_NONE. */
    const zc_tensor *in;
    zc_tensor *out;
    /* The same inputs in host memory where the host knows the values (constants; the operands that
     * zc_op_host_inputs names, always); else data is NULL. */
    const zc_tensor *host;
    /* Elements from one line of the last axis to the next, of inputs and of results; 0: lines lie
     * side by side, as all do where the array is NULL. Only of operands that the kernel takes so.
     */
    const int64_t *in_pitch, *out_pitch;
    zc_fault_word *fault;            /* device memory, for kernels that report */
    uint32_t step_id;                /* 1 + index of the step, for fault reports */
    const struct zc_pkernel *kernel; /* with its configuration, by zc_config_<family> */
    const float *literals;           /* of the step's choice, for its fused work */
    uint32_t nliterals;
    bool is_static; /* every operand's shape was certain when the kernel was specialised */
    int sm_count;
    const char *subject; /* step's name for messages */
    zc_diag *diag;
    struct zc_launcher *launcher; /* of the functions below */
} zc_launch;

typedef zc_status (*zc_launch_fn)(zc_launch *l);

/* Issues entry point `entry` (ZC_KERNEL(entry) in the template). `params` is copied: the kernel's
 * one by-value parameter, at most 4096 bytes. A grid with a 0 issues nothing. grid.y and z are at
 * most 65535. */
zc_status zc_launch_kernel(zc_launch *l, int entry, zc_dim3 grid, uint32_t block, uint32_t smem,
                           const void *params, size_t params_bytes);
/* Entry 0 of a family with a configuration: threads, shared memory and cluster are the plan's. */
zc_status zc_launch_configured(zc_launch *l, zc_dim3 grid, const void *params, size_t params_bytes);

/* How many of its clusters the device runs at once, one at least: they lie within parts of the
 * device that are not all of one size. */
zc_status zc_launch_clusters(zc_launch *l, int *count);

/* A matrix in device memory, or several of them, and the box of it that the copy engine moves at
 * once. Elements of 1, 2 or 4 bytes.
 *
 * Of images [images][sides ...][channels], patches: of `pixels` windows in their order, one line of
 * box[0] channels each. Windows begin at `first` of a side, one every `step`, and the last begins
 * `beyond` elements after the side's last one at most. The kernel names one tap of the window. */
typedef struct zc_tensor_box {
    const void *data; /* aligned to 16 */
    zc_dtype dtype;
    bool tf32;          /* f32 is rounded to tf32 on its way, ties to even */
    int rank;           /* 2 to 5 */
    int64_t dims[5];    /* innermost first */
    int64_t strides[5]; /* bytes from one to the next, multiples of 16; of axis 0 ignored */
    uint32_t box[5];    /* at most 256 each */
    bool swizzled;      /* lines of 128 bytes in shared memory, or 64, swizzled */
    uint32_t pixels;    /* of patches, at most 1024; 0: a box */
    int first[3], beyond[3], step[3]; /* of patches, innermost side first */
} zc_tensor_box;
/* Can the copy engine address it? */
bool zc_tensor_box_ok(const zc_tensor_box *b);
zc_status zc_launch_tensor_map(zc_launch *l, const zc_tensor_box *b, zc_tensor_map *out);
/* n operands broadcast to the shape of `to`, over at most `most` axes; pitches as in_pitch. */
zc_status zc_launch_broadcast(const zc_launch *l, const zc_tensor *to, int n,
                              const zc_tensor *operands, const int64_t *pitches, int most,
                              zc_collapsed *out);
/* The operands of the step's prologue, of its epilogue: none without one. */
zc_status zc_launch_prologue(const zc_launch *l, struct zc_fused_params *p);
zc_status zc_launch_epilogue(const zc_launch *l, struct zc_fused_params *p);
/* Device memory for this step alone, aligned to 256; earlier pieces of the same step stay valid. */
zc_status zc_launch_scratch(zc_launch *l, size_t bytes, void **out);
/* n counters in device memory, all 0 where kernels begin: each kernel leaves them so
 * (zc/last_block.cuh). All steps share them, so a step asks once. Not of DYNAMIC operations. */
zc_status zc_launch_counters(zc_launch *l, int64_t n, unsigned **out);
/* Fills device memory with a byte; copies within the device. */
zc_status zc_launch_fill(zc_launch *l, void *to, int byte, size_t bytes);
zc_status zc_launch_copy(zc_launch *l, void *to, const void *from, size_t bytes);
/* DYNAMIC operations only: waits, and copies from the device to the host. When dry: zeros. */
zc_status zc_launch_fetch(zc_launch *l, void *to, const void *from, size_t bytes);
/* DYNAMIC operations only: output i's shape; sets l->out[i]. */
zc_status zc_launch_resize(zc_launch *l, int i, int rank, const int64_t *dims);

/* ceil(n / per) blocks, at most `most` (0: 2^31 - 1): for grid-stride loops. */
uint32_t zc_launch_blocks(int64_t n, int64_t per, int64_t most);

static inline const void *zc_launch_in(const zc_launch *l, int i)
{
    return i < l->nin && l->in[i].dtype != ZC_NONE ? l->in[i].data : NULL;
}
/* NULL: it is not wanted. */
static inline void *zc_launch_out(const zc_launch *l, int i)
{
    return i < l->nout && l->out[i].dtype != ZC_NONE ? l->out[i].data : NULL;
}
static inline bool zc_launch_has(const zc_launch *l, int i)
{
    return i < l->nin && l->in[i].dtype != ZC_NONE;
}

/* Elements from one line of the last axis to the next, at least of rank 1. */
static inline int64_t zc_launch_in_pitch(const zc_launch *l, int i)
{
    const int64_t pitch = l->in_pitch ? l->in_pitch[i] : 0;
    return pitch ? pitch : l->in[i].dims[l->in[i].rank - 1];
}
static inline int64_t zc_launch_out_pitch(const zc_launch *l, int i)
{
    const int64_t pitch = l->out_pitch ? l->out_pitch[i] : 0;
    return pitch ? pitch : l->out[i].dims[l->out[i].rank - 1];
}

/* What shape inference may have left open: input i, if it is there, has `need` elements. */
zc_status zc_launch_check_size(zc_launch *l, int i, int64_t need, const char *what);

/* Integer list of host input i (i32 or i64 values); n is -1 when the operand is absent. `v` must
 * hold `most`. */
zc_status zc_launch_ints(zc_launch *l, int i, int64_t *v, int most, int *n);

#define FAMILY(name, template) zc_status zc_launch_##name(zc_launch *l);
#include "op/kernels.def"

#endif
