#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/peaks.h"
#include "cuda/cache.h"

typedef struct options {
    bool clear, json;
    int64_t keep; /* MiB; -1: not given */
} options;

static const cli_option table[] = {
    {.name = "clear",
     .help = "remove all of it",
     .set = cli_set_flag,
     .at = offsetof(options, clear)},
    {.name = "keep",
     .arg = "MIB",
     .help = "remove what was used longest ago until at most so many MiB are left",
     .most = INT64_MAX >> 20,
     .set = cli_set_int,
     .at = offsetof(options, keep)},
    {.name = "json",
     .help = "print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(options, json)},
};

typedef struct state {
    const char *folder; /* NULL: there is no cache */
    zc_cache_stats now[ZC_CACHE_KINDS], removed;
    ZC_VEC(cli_kept_peaks) peaks;
} state;

static uint64_t bytes_of(const state *s)
{
    return s->now[ZC_CACHE_KERNELS].bytes + s->now[ZC_CACHE_PEAKS].bytes;
}

static void print_json(const state *s)
{
    fputs("{\"folder\": ", stdout);
    if (s->folder)
        cli_json(stdout, s->folder);
    else
        fputs("null", stdout);
    printf(", \"files\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"removed_files\": %" PRIu64
           ", \"removed_bytes\": %" PRIu64 ", \"peaks\": [",
           s->now[ZC_CACHE_KERNELS].files + s->now[ZC_CACHE_PEAKS].files, bytes_of(s),
           s->removed.files, s->removed.bytes);
    for (size_t i = 0; i < s->peaks.len; i++) {
        const cli_kept_peaks *p = &s->peaks.data[i];
        fputs(i ? ", {\"device\": " : "{\"device\": ", stdout);
        cli_json(stdout, p->device);
        printf(", \"driver\": %d, \"threads\": %d, \"zc\": ", p->driver, p->threads);
        cli_json(stdout, p->version);
        fputs(", ", stdout);
        cli_peaks_json(stdout, &p->v);
        putchar('}');
    }
    puts("]}");
}

static void print_text(const state *s)
{
    if (!s->folder) {
        puts("no cache: none of ZC_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder");
        return;
    }
    cli_put(stdout, s->folder);
    printf(": kernels: %" PRIu64 " (%.1f MB)", s->now[ZC_CACHE_KERNELS].files,
           (double)s->now[ZC_CACHE_KERNELS].bytes / 1e6);
    if (s->removed.files)
        printf(", removed: %" PRIu64 " (%.1f MB)", s->removed.files,
               (double)s->removed.bytes / 1e6);
    puts("");
    for (size_t i = 0; i < s->peaks.len; i++) {
        const cli_kept_peaks *p = &s->peaks.data[i];
        fputs("peaks of ", stdout);
        cli_put(stdout, p->device);
        if (p->threads) printf(", %d threads", p->threads);
        if (p->driver) printf(", driver for CUDA %d.%d", p->driver / 1000, p->driver % 1000 / 10);
        fputs(", measured by zc ", stdout);
        cli_put(stdout, p->version);
        printf(": %.1f GB/s", p->v.bytes * 1e-9);
        if (p->v.operations[ZC_PEAK_F32] > 0)
            printf(", %.1f GFLOP/s of f32 products", p->v.operations[ZC_PEAK_F32] * 1e-9);
        cli_peaks_print_cores(stdout, &p->v);
        puts("");
    }
}

static void add_peaks(void *user, const zc_buf *bytes)
{
    state *s = user;
    cli_kept_peaks p;
    if (cli_peaks_read(bytes, &p)) (void)ZC_VEC_PUSH(&s->peaks, p);
}

static zc_status look(const options *o, state *s, zc_diag *diag)
{
    bool remove = o->clear || o->keep >= 0;
    uint64_t keep = o->clear ? 0 : (uint64_t)o->keep << 20;
    if (remove) ZC_TRY(zc_cache_trim(keep, &s->removed, diag));
    for (int k = 0; k < ZC_CACHE_KINDS; k++)
        ZC_TRY(zc_cache_look((zc_cache_kind)k, &s->now[k], diag));
    ZC_TRY(zc_cache_each(ZC_CACHE_PEAKS, add_peaks, s, diag));
    if (remove && bytes_of(s) > keep)
        return zc_fail(diag, ZC_ERR_IO, s->folder,
                       "files could not be removed (%" PRIu64 " bytes are left)", bytes_of(s));
    return ZC_OK;
}

static int run(int argc, char **argv)
{
    char folder[4096];
    options o = {.keep = -1};
    int code = cli_parse(&cli_cache_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    if (argc > optind) return cli_usage("cache", "takes no operand (got '%s')", argv[optind]);
    if (o.clear && o.keep >= 0) return cli_usage("cache", "--clear and --keep exclude each other");
    state s = {.folder = zc_cache_folder(folder, sizeof folder)};
    zc_diag *diag = zc_diag_create();
    zc_status status = look(&o, &s, diag);
    code = EXIT_OK;
    if (status != ZC_OK)
        code = cli_report(diag, status);
    else
        (o.json ? print_json : print_text)(&s);
    ZC_VEC_FINI(&s.peaks);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_cache_command = {
    .name = "cache",
    .summary = "look at or clear the cache of compiled GPU kernels and measured peaks",
    .operands = "[OPTIONS]",
    .about =
        "Says where compiled GPU kernels are kept, how many there are and how large they are, and "
        "lists what zc profile has measured of processors and GPUs once: the bytes and products a "
        "second that they can do. The cache only saves time: everything in it can be made again, "
        "and it "
        "never holds more "
        "than 1 GiB. The folder is ZC_CACHE_DIR; without it, zc in XDG_CACHE_HOME or .cache/zc "
        "in HOME.",
    .examples = "zc cache\n"
                "zc cache --keep 100\n"
                "zc cache --clear --json\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_NONE,
    .run = run,
};
