/* What the tests of the GPU runtime share: the fake driver of tests/hostcuda in this process, small
 * models compiled for it, and what their results must be. Where the dynamic linker finds a GPU's
 * own driver first, they run there: device memory is reached by gpu_put and gpu_get alone, and what
 * only the fake can show is skipped. Include cmocka.h and what it needs before. */
#ifndef ZC_TESTS_GPU_H
#define ZC_TESTS_GPU_H

#include "hostcuda/cuda_functions.h"
#include "support/expect.h"
#include "zc/zc.h"

/* cmocka's group functions: a folder for the kernel cache, so that each kernel is compiled once. */
int gpu_group_setup(void **state);
int gpu_group_teardown(void **state);

bool gpu_is_fake(void);
/* Skip the test elsewhere. Not for setup functions, which cmocka does not let skip. */
void gpu_needs_fake(void);
void gpu_needs_real(void);
/* Forgets everything in the driver, and sets the variable ZC_HOSTCUDA_<name>, which needs the fake;
 * name NULL: none. */
void gpu_fake(const char *name, const char *value);
/* The same with ZC_HOSTCUDA_FAIL="<call>:<n>:<code>". */
void gpu_fault(const char *call, long n, int code);
/* What the fake driver counts; on a GPU's own all is 0. */
void gpu_counts(hc_counts *out);

/* Copies to and from device memory. */
void gpu_put(hc_ptr to, const void *from, size_t bytes);
void gpu_get(void *to, const void *from, size_t bytes);
/* What is free of the device's memory. */
size_t gpu_bytes_free(void);

/* The plan of a model in the words of support/onnx_text.h; the caller frees it with zc_free. */
void gpu_compile(const char *text, const char *target, bool strip, void **bytes, size_t *len);

/* ---- a model: y[M, 8] = softmax(x[N, 8] at the rows idx[M]) * w, in three kernels and one graph
 * ---- */
extern const char gpu_rows_text[];
enum { GPU_COLUMNS = 8, GPU_ROWS_MAX = 64 };

typedef struct gpu_rows {
    float x[GPU_ROWS_MAX * GPU_COLUMNS];
    int64_t idx[GPU_ROWS_MAX];
    int64_t n, m;
} gpu_rows;
/* n rows and m indices that depend on seed. */
void gpu_rows_make(gpu_rows *in, int64_t n, int64_t m, unsigned seed);
zc_status gpu_rows_set(zc_session *s, gpu_rows *in, zc_diag *diag);
/* Are these the m rows that the inputs give? */
bool gpu_rows_right(const gpu_rows *in, const float *y);
bool gpu_rows_right_at(const gpu_rows *in, hc_ptr y);
/* Runs, and the result must be right. */
void gpu_rows_run(zc_session *s, gpu_rows *in);

/* A session on the GPU, or the failure of the test. */
zc_session *gpu_session(zc_plan *plan);
zc_plan *gpu_load(const void *bytes, size_t len);

/* What most tests start from: that model as a plan for the fake driver, and inputs of 5 rows and 4
 * indices. */
typedef struct gpu_fixture {
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_session *session;  /* NULL: the test makes its own */
    hc_context_t context; /* the test's own hold on the device */
    zc_diag *diag;
    gpu_rows in;
} gpu_fixture;

/* strip: a plan without sources. */
gpu_fixture *gpu_fixture_create(bool strip);
/* Its session and plan too, behind which nothing may be left on the device when it is idle. */
void gpu_fixture_destroy(gpu_fixture *f, bool idle);

#endif
