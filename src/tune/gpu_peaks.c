#include "tune/gpu_peaks.h"

#include "abi/peak.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/stats.h"
#include "codegen/codegen.h"
#include "cuda/device.h"

enum { COPY = 256 << 20, COPIES = 10, LAUNCHES = 51, ROUNDS_MOST = 1 << 20 };
#define LAUNCH_MS  0.5  /* at least that a kernel of products takes */
#define SETTLE_MS  60.0 /* until clocks are what they stay */
#define MEASURE_MS 60.0

typedef struct probe {
    zc_device device;
    zc_cu_ptr from, to;
    zc_cu_stream stream;
    zc_cu_event begin, end;
} probe;

static zc_status check(probe *p, int code, const char *what, zc_diag *diag)
{
    return zc_device_check(&p->device, code, what, diag);
}

static zc_status open_probe(probe *p, zc_diag *diag)
{
    zc_device *d = &p->device;
    ZC_TRY(zc_device_alloc(d, COPY, "probe", &p->from, diag));
    ZC_TRY(zc_device_alloc(d, COPY, "probe", &p->to, diag));
    ZC_TRY(check(p, d->cu.stream_create(&p->stream, ZC_CU_STREAM_NON_BLOCKING), "cuStreamCreate",
                 diag));
    ZC_TRY(check(p, d->cu.event_create(&p->begin, 0), "cuEventCreate", diag));
    return check(p, d->cu.event_create(&p->end, 0), "cuEventCreate", diag);
}

static void close_probe(probe *p)
{
    zc_device *d = &p->device;
    if (!d->lost && p->begin) (void)d->cu.event_destroy(p->begin);
    if (!d->lost && p->end) (void)d->cu.event_destroy(p->end);
    if (!d->lost && p->stream) (void)d->cu.stream_destroy(p->stream);
    zc_device_free(d, &p->from);
    zc_device_free(d, &p->to);
}

static zc_status begin(probe *p, zc_diag *diag)
{
    return check(p, p->device.cu.event_record(p->begin, p->stream), "cuEventRecord", diag);
}

/* Milliseconds since begin(). */
static zc_status end(probe *p, double *ms, zc_diag *diag)
{
    const zc_cu *cu = &p->device.cu;
    float v = 0;
    ZC_TRY(check(p, cu->event_record(p->end, p->stream), "cuEventRecord", diag));
    ZC_TRY(check(p, cu->event_wait(p->end), "cuEventSynchronize", diag));
    ZC_TRY(check(p, cu->event_ms(&v, p->begin, p->end), "cuEventElapsedTime", diag));
    *ms = v > 0 ? (double)v : 1e-3;
    return ZC_OK;
}

/* ---- memory ---- */

/* The first copy warms up. */
static zc_status measure_copies(probe *p, zc_peaks *out, zc_diag *diag)
{
    double ms = 0;
    for (int i = 0; i <= COPIES; i++) {
        ZC_TRY(begin(p, diag));
        ZC_TRY(check(p, p->device.cu.copy_within(p->to, p->from, COPY, p->stream), "probe", diag));
        ZC_TRY(end(p, &ms, diag));
        double rate = 2.0 * COPY / (ms * 1e-3);
        if (i && rate > out->bytes) out->bytes = rate;
    }
    return ZC_OK;
}

/* ---- arithmetic ---- */

typedef enum kind { CORES, MMA, WGMMA } kind;

/* Products of one type. Operands are 1/2 to 2 of either sign, all other bits random; integers are
 * any odd ones. */
typedef struct form {
    zc_peak peak;
    kind kind;
    const char *product, *sum; /* as the template has them */
    uint32_t keep, set;
    int bytes; /* of an element; a product has 32 of them of the summed axis */
} form;

static const form forms[] = {
    {ZC_PEAK_F32, CORES, "", "f32", 0x80ffffff, 0x3f000000, 4},
    {ZC_PEAK_F16, WGMMA, "ZC_WGMMA(zc_peak_product, 256, F16, 0)", "f32", 0x87ff87ff, 0x38003800,
     2},
    {ZC_PEAK_BF16, WGMMA, "ZC_WGMMA(zc_peak_product, 256, BF16, 0)", "f32", 0x80ff80ff, 0x3f003f00,
     2},
    {ZC_PEAK_TF32, WGMMA, "ZC_WGMMA_ALONG(zc_peak_product, 256, TF32)", "f32", 0x80ffffff,
     0x3f000000, 4},
    {ZC_PEAK_E4M3, WGMMA, "ZC_WGMMA_ALONG(zc_peak_product, 256, E4M3)", "f32", 0x8f8f8f8f,
     0x30303030, 1},
    {ZC_PEAK_S8, WGMMA, "ZC_WGMMA_ALONG(zc_peak_product, 256, S8)", "i32", 0xffffffff, 0x01010101,
     1},
    {ZC_PEAK_F16, MMA, "zc_mma_m16n8k16_f16", "f32", 0x87ff87ff, 0x38003800, 2},
    {ZC_PEAK_BF16, MMA, "zc_mma_m16n8k16_bf16", "f32", 0x80ff80ff, 0x3f003f00, 2},
    {ZC_PEAK_TF32, MMA, "zc_mma_m16n8k8_tf32", "f32", 0x80ffffff, 0x3f000000, 4},
    {ZC_PEAK_S8, MMA, "zc_mma_m16n8k32_s8", "i32", 0xffffffff, 0x01010101, 1},
};

/* What a block of the template does in a round. */
enum {
    WGMMA_THREADS = 256,
    WGMMA_SMEM = 4 * (2 * 64 + 256) * 128,
    WGMMA_PRODUCTS = 2 * 16 * 64 * 256, /* warpgroups, products, rows, columns */
    MMA_THREADS = 512,
    MMA_PRODUCTS = 16 * 32 * 16 * 8, /* warps, products, rows, columns */
    CORES_THREADS = 512,
    CORES_PRODUCTS = CORES_THREADS * 64
};

static bool is_for(const form *f, int arch)
{
    return f->kind == CORES || f->kind == (arch == 90 ? WGMMA : MMA);
}

bool zc_peak_kernel_of(int arch, size_t i, zc_peak_kernel *out)
{
    const form *f = forms, *const end = forms + ZC_COUNTOF(forms);
    while (f < end && (!is_for(f, arch) || i--)) f++;
    if (f == end) return false;
    const double products = f->kind == WGMMA ? WGMMA_PRODUCTS : MMA_PRODUCTS;
    const uint32_t threads = f->kind == WGMMA ? WGMMA_THREADS
                             : f->kind == MMA ? MMA_THREADS
                                              : CORES_THREADS;
    *out = (zc_peak_kernel){
        .peak = f->peak,
        .operations = 2 * (f->kind == CORES ? CORES_PRODUCTS : products * (32.0 / f->bytes)),
        .kernel = {.family = "",
                   .template_name = "peak.cu",
                   .name = "zc_peak",
                   .threads = threads,
                   .smem = f->kind == WGMMA ? WGMMA_SMEM : 0,
                   .cluster = 1}};
    zc_snprintf(out->spec, sizeof out->spec,
                "#pragma once\n#define ZC_NAME zc_peak\n#define Z_KEEP 0x%08xu\n"
                "#define Z_SET 0x%08xu\n#define Z_THREADS %u\n%s#define Z_PRODUCT %s\n"
                "#define Z_SUM %s\n",
                f->keep, f->set, threads,
                f->kind == WGMMA ? "#define Z_WGMMA 1\n"
                : f->kind == MMA ? "#define Z_MMA 1\n"
                                 : "",
                f->product, f->sum);
    out->kernel.spec = out->spec;
    return true;
}

typedef struct loaded {
    const zc_peak_kernel *k;
    zc_cu_module module;
    zc_cu_function function;
} loaded;

static zc_status load(probe *p, const zc_rtc *rtc, loaded *l, zc_diag *diag)
{
    const zc_pkernel *k = &l->k->kernel;
    const zc_cu *cu = &p->device.cu;
    zc_buf code = {0};
    zc_status status = zc_codegen_kernel(rtc, k, p->device.arch, &code, diag);
    if (status == ZC_OK)
        status = check(p, cu->module_load(&l->module, code.data), "cuModuleLoadData", diag);
    zc_buf_fini(&code);
    ZC_TRY(status);
    ZC_TRY(check(p, cu->module_function(&l->function, l->module, "zc_peak_0"),
                 "cuModuleGetFunction", diag));
    if (!k->smem) return ZC_OK;
    return check(p, cu->function_set(l->function, ZC_CU_FUNCTION_MAX_DYNAMIC_SMEM, (int)k->smem),
                 "cuFuncSetAttribute", diag);
}

static zc_status launch(probe *p, const loaded *l, int blocks, int rounds, double *ms,
                        zc_diag *diag)
{
    struct zc_peak_params params = {.sums = (void *)(uintptr_t)p->to, .rounds = rounds};
    void *arguments[] = {&params};
    const zc_cu_launch_config config = {.grid_x = (unsigned)blocks,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = l->k->kernel.threads,
                                        .block_y = 1,
                                        .block_z = 1,
                                        .shared_bytes = l->k->kernel.smem,
                                        .stream = p->stream};
    ZC_TRY(begin(p, diag));
    ZC_TRY(check(p, p->device.cu.launch(&config, l->function, arguments, NULL), "probe", diag));
    return end(p, ms, diag);
}

/* A block a multiprocessor, which it fills. */
static zc_status measure_products(probe *p, const loaded *l, zc_peaks *out, zc_diag *diag)
{
    const int blocks = p->device.sm_count;
    int rounds = 1, launches = 0;
    double ms = 0, sum = 0;
    ZC_TRY(launch(p, l, blocks, rounds, &ms, diag)); /* warms up */
    ZC_TRY(launch(p, l, blocks, rounds, &ms, diag));
    while (ms < LAUNCH_MS && rounds < ROUNDS_MOST)
        ZC_TRY(launch(p, l, blocks, rounds *= 4, &ms, diag));
    for (double settled = 0; settled < SETTLE_MS; settled += ms)
        ZC_TRY(launch(p, l, blocks, rounds, &ms, diag));
    for (; sum < MEASURE_MS; sum += ms, launches++) ZC_TRY(launch(p, l, blocks, rounds, &ms, diag));
    out->operations[l->k->peak] = l->k->operations * blocks * rounds * launches / (sum * 1e-3);
    return ZC_OK;
}

/* One block without a round. */
static zc_status measure_launch(probe *p, const loaded *l, zc_peaks *out, zc_diag *diag)
{
    double ms[LAUNCHES];
    for (int i = 0; i < LAUNCHES; i++) ZC_TRY(launch(p, l, 1, 0, &ms[i], diag));
    zc_interval median;
    if (!zc_median_of(ms, LAUNCHES, &median)) return zc_fail_nomem(diag, "probe", LAUNCHES);
    out->launch = median.mid * 1e-3;
    return ZC_OK;
}

static zc_status measure_kernel(probe *p, const zc_rtc *rtc, const zc_peak_kernel *k, zc_peaks *out,
                                zc_diag *diag)
{
    loaded l = {.k = k};
    zc_status status = load(p, rtc, &l, diag);
    if (status == ZC_OK && k->peak == ZC_PEAK_F32) status = measure_launch(p, &l, out, diag);
    if (status == ZC_OK) status = measure_products(p, &l, out, diag);
    if (l.module && !p->device.lost) (void)p->device.cu.module_unload(l.module);
    return status;
}

static zc_status measure(probe *p, zc_peaks *out, zc_diag *diag)
{
    zc_rtc rtc;
    ZC_TRY(measure_copies(p, out, diag));
    if (zc_rtc_open(&rtc, NULL) != ZC_OK) return ZC_OK;
    zc_status status = ZC_OK;
    zc_peak_kernel k;
    for (size_t i = 0; status == ZC_OK && zc_peak_kernel_of(p->device.arch, i, &k); i++)
        status = measure_kernel(p, &rtc, &k, out, diag);
    zc_rtc_close(&rtc);
    return status;
}

zc_status zc_probe_gpu(int ordinal, zc_peaks *out, zc_diag *diag)
{
    probe p = {.from = 0};
    *out = (zc_peaks){0};
    ZC_TRY(zc_device_open(ordinal, &p.device, diag));
    zc_status status = zc_device_enter(&p.device, diag);
    if (status == ZC_OK) {
        status = open_probe(&p, diag);
        if (status == ZC_OK) status = measure(&p, out, diag);
        close_probe(&p);
        zc_device_leave(&p.device);
    }
    zc_device_close(&p.device);
    return status;
}
