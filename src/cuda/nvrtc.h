/* NVRTC, opened with dlopen: kernels to machine code. Compiles may run in several threads at once.
 */
#ifndef ZC_CUDA_NVRTC_H
#define ZC_CUDA_NVRTC_H

#include "planfile/program.h"

typedef struct zc_rtc_program_opaque *zc_rtc_program;

typedef struct zc_rtc {
    void *library;
    int major, minor;
#define RTC(result, field, symbol, params) result(*field) params;
#include "cuda/nvrtc.def"
#undef RTC
} zc_rtc;

/* Opens libnvrtc (13, 12, or the unversioned name); the error names the paths tried. */
zc_status zc_rtc_open(zc_rtc *rtc, zc_diag *diag);
void zc_rtc_close(zc_rtc *rtc);

/* Is code for it compiled with the instructions that this chip alone has (wgmma), the "a" behind
 * its number? It runs on no other. */
bool zc_rtc_arch_alone(int arch);
/* "sm_90a": how NVRTC is told the architecture 90. */
const char *zc_rtc_arch(int arch, char *buf, size_t n);
/* The options a kernel is compiled with; returns how many. */
enum { ZC_RTC_OPTIONS = 5 };
int zc_rtc_options(const zc_rtc *rtc, const zc_pkernel *kernel, int arch, char arch_option[64],
                   const char *options[ZC_RTC_OPTIONS]);

/* Sources of users have names that begin so, and serve the kernels whose specialisation names them;
 * all others may serve any. */
#define ZC_USER_SOURCE "user/"
bool zc_rtc_serves(const zc_psource *source, const zc_pkernel *kernel);

/* Does the compiler's log tell of more than `most` bytes kept in local memory, or of products of
 * warpgroups that it serialises? Then what, in `why`. */
bool zc_rtc_remarks(const char *log, int most, char *why, size_t n);

/* One kernel's machine code, appended to `out`; its compiler log (registers, spills) to `log`,
 * which may be NULL. SIGINT, SIGTERM and SIGXFSZ are NVRTC's while it compiles: they are blocked in
 * this thread, and afterwards as the caller had set them. */
zc_status zc_rtc_compile(const zc_rtc *rtc, const zc_pkernel *kernel, const zc_psource *sources,
                         uint32_t nsources, int arch, zc_buf *out, zc_buf *log, zc_diag *diag);

#endif
