/* The kernel cache: what a key tells apart, damaged entries, folders that cannot be written,
 * processes at once, the bound on its size. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/cache.h"
#include "cuda/gpu.h"

static char folder[64];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", "/tmp/zc-cache-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    gpu_fake(NULL, NULL);
    return setenv("ZC_CACHE_DIR", folder, 1);
}

static int teardown(void **state)
{
    char command[256];
    (void)state;
    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
    return system(command);
}

/* ---- keys ---- */

static zc_psource source = {.name = "t.cu", .text = "extern \"C\" __global__ void k() {}\n"};
static const zc_pkernel kernel = {
    .name = "K", .family = "cast", .template_name = "t.cu", .spec = "#define N 1\n"};

static zc_cache_key key_of(const zc_rtc *rtc, const zc_pkernel *k, const zc_psource *s, int arch)
{
    zc_cache_key key;
    zc_cache_make_key(rtc, k, s, 1, arch, &key);
    assert_int_equal(strlen(key.hex), 64);
    return key;
}

static void test_what_a_key_tells_apart(void **state)
{
    (void)state;
    zc_rtc rtc;
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_rtc_open(&rtc, diag));
    zc_cache_key key = key_of(&rtc, &kernel, &source, 90), other;
    other = key_of(&rtc, &kernel, &source, 90);
    assert_string_equal(other.hex, key.hex);
    other = key_of(&rtc, &kernel, &source, 80);
    assert_string_not_equal(other.hex, key.hex);
    zc_pkernel k = kernel;
    k.name = "another name, the same code";
    other = key_of(&rtc, &k, &source, 90);
    assert_string_equal(other.hex, key.hex);
    k.spec = "#define N 2\n";
    other = key_of(&rtc, &k, &source, 90);
    assert_string_not_equal(other.hex, key.hex);
    zc_psource s = source;
    s.text = "extern \"C\" __global__ void l() {}\n";
    other = key_of(&rtc, &kernel, &s, 90);
    assert_string_not_equal(other.hex, key.hex);
    zc_rtc later = rtc;
    later.minor++;
    other = key_of(&later, &kernel, &source, 90);
    assert_string_not_equal(other.hex, key.hex);
    zc_rtc_close(&rtc);
    zc_diag_destroy(&diag);
}

/* A compiler of the same version that was built otherwise: a library of two lines, linked with and
 * without a build id. NULL where there is no C compiler. */
static void *build_compiler(int number, const char *link_option)
{
    char path[128], command[512];
    snprintf(path, sizeof path, "%s/nvrtc%d.so", folder, number);
    snprintf(command, sizeof command,
             "echo 'int nvrtcVersion(int *a, int *b) { *a = 13; *b = 0; return 0; } int zc_build = "
             "%d;' | "
             "cc -shared -fPIC -x c -o %s %s - 2>/dev/null",
             number, path, link_option);
    return system(command) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void test_builds_of_one_version(void **state)
{
    (void)state;
    static const char *const options[] = {"-Wl,--build-id=sha1", "-Wl,--build-id=sha1",
                                          "-Wl,--build-id=none", "-Wl,--build-id=none"};
    zc_cache_key keys[ZC_COUNTOF(options)];
    void *libraries[ZC_COUNTOF(options)];
    for (size_t i = 0; i < ZC_COUNTOF(options); i++) {
        zc_rtc rtc = {.major = 13, .minor = 0};
        libraries[i] = build_compiler((int)i, options[i]);
        if (!libraries[i]) {
            print_message("skipped: needs a C compiler\n");
            skip();
        }
        void *at = dlsym(libraries[i], "nvrtcVersion");
        assert_non_null(at);
        memcpy(&rtc.version, &at, sizeof at);
        keys[i] = key_of(&rtc, &kernel, &source, 90);
        zc_cache_key again = key_of(&rtc, &kernel, &source, 90);
        assert_string_equal(keys[i].hex, again.hex);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(keys[i].hex, keys[j].hex);
    }
    for (size_t i = 0; i < ZC_COUNTOF(options); i++) dlclose(libraries[i]);
}

/* ---- entries ---- */

static zc_cache_key made_up_key(unsigned n)
{
    zc_cache_key key = {.kind = ZC_CACHE_KERNELS};
    snprintf(key.hex, sizeof key.hex, "%064x", n);
    return key;
}

static bool holds(const zc_cache_key *key, const void *want, size_t len)
{
    zc_buf got = {0};
    bool found = zc_cache_get(key, &got);
    if (found) {
        assert_int_equal(got.len, len);
        assert_memory_equal(got.data, want, len);
    }
    zc_buf_fini(&got);
    return found;
}

static void path_of(const zc_cache_key *key, char *out, size_t n)
{
    snprintf(out, n, "%s/%s.cubin", folder, key->hex);
}

static void write_file(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void test_damaged_entries(void **state)
{
    (void)state;
    enum { LEN = 200, HEADER = 40 };
    char path[192];
    uint8_t code[LEN], file[LEN + HEADER];
    zc_cache_key key = made_up_key(1);
    for (int i = 0; i < LEN; i++) code[i] = (uint8_t)(i * 7);
    assert_false(holds(&key, code, LEN));
    zc_cache_put(&key, code, LEN, ZC_CACHE_BYTES_MAX);
    assert_true(holds(&key, code, LEN));
    path_of(&key, path, sizeof path);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(file, 1, sizeof file, f), sizeof file);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    for (size_t i = 0; i < sizeof file; i++) {
        file[i] ^= 0x10;
        write_file(path, file, sizeof file);
        assert_false(holds(&key, code, LEN));
        file[i] ^= 0x10;
    }
    for (size_t n = 0; n < sizeof file; n++) {
        write_file(path, file, n);
        assert_false(holds(&key, code, LEN));
    }
    zc_cache_put(&key, code, LEN, ZC_CACHE_BYTES_MAX); /* replaces it */
    assert_true(holds(&key, code, LEN));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* no file at all */
    assert_false(holds(&key, code, LEN));
    zc_cache_put(&key, code, LEN, ZC_CACHE_BYTES_MAX);
    assert_false(holds(&key, code, LEN));
    assert_int_equal(rmdir(path), 0);
}

/* A plan that was built with a damaged entry at hand has the same code as without. */
static void test_damaged_entry_is_compiled_again(void **state)
{
    (void)state;
    void *bytes[3];
    size_t len[3];
    char command[256];
    gpu_compile(gpu_rows_text, "sm_90", true, &bytes[0], &len[0]);
    snprintf(command, sizeof command, "for f in %s/*.cubin; do printf x >>$f; done", folder);
    assert_int_equal(system(command), 0);
    gpu_compile(gpu_rows_text, "sm_90", true, &bytes[1], &len[1]);
    gpu_compile(gpu_rows_text, "sm_90", true, &bytes[2], &len[2]); /* from the cache again */
    for (int i = 1; i < 3; i++) {
        zc_plan *plan = gpu_load(bytes[i], len[i]);
        zc_session *s = gpu_session(plan);
        gpu_rows in;
        gpu_rows_make(&in, 5, 4, 1);
        gpu_rows_run(s, &in);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&plan);
    }
    assert_int_equal(len[1], len[2]);
    assert_memory_equal(bytes[1], bytes[2], len[1]);
    for (int i = 0; i < 3; i++) zc_free(bytes[i]);
}

/* ---- folders ---- */

static void test_folders_that_cannot_be_written(void **state)
{
    (void)state;
    static const char code[] = "code";
    zc_cache_key key = made_up_key(2);
    zc_cache_stats stats;
    zc_diag *diag = zc_diag_create();
    char file[128];
    zc_cache_put(&key, code, sizeof code, ZC_CACHE_BYTES_MAX);
    assert_int_equal(chmod(folder, 0500), 0);
    zc_cache_key another = made_up_key(3);
    zc_cache_put(&another, code, sizeof code, ZC_CACHE_BYTES_MAX);
    assert_true(holds(&key, code, sizeof code));
    if (geteuid() != 0) assert_false(holds(&another, code, sizeof code));
    assert_int_equal(chmod(folder, 0700), 0);
    /* A file where the folder should be; a path that cannot be; none. */
    snprintf(file, sizeof file, "%s/file", folder);
    write_file(file, "x", 1);
    const char *const bad[] = {file, "/proc/none/zc", "/dev/null"};
    for (size_t i = 0; i < ZC_COUNTOF(bad); i++) {
        setenv("ZC_CACHE_DIR", bad[i], 1);
        zc_cache_put(&key, code, sizeof code, ZC_CACHE_BYTES_MAX);
        assert_false(holds(&key, code, sizeof code));
        zc_status status = zc_cache_look(ZC_CACHE_KERNELS, &stats, diag);
        assert_true(status == ZC_OK || status == ZC_ERR_IO);
        zc_diag_clear(diag);
    }
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    unsetenv("ZC_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "not/absolute", 1);
    assert_null(zc_cache_folder(file, sizeof file));
    zc_cache_put(&key, code, sizeof code, ZC_CACHE_BYTES_MAX);
    assert_false(holds(&key, code, sizeof code));
    expect_ok(diag, zc_cache_look(ZC_CACHE_KERNELS, &stats, diag));
    assert_int_equal(stats.files, 0);
    setenv("XDG_CACHE_HOME", "/x", 1);
    assert_string_equal(zc_cache_folder(file, sizeof file), "/x/zc");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    free(home);
    zc_diag_destroy(&diag);
}

static void test_missing_folders_are_made(void **state)
{
    (void)state;
    char deep[128];
    zc_cache_key key = made_up_key(4);
    snprintf(deep, sizeof deep, "%s/a/b/c", folder);
    setenv("ZC_CACHE_DIR", deep, 1);
    zc_cache_put(&key, "code", 4, ZC_CACHE_BYTES_MAX);
    assert_true(holds(&key, "code", 4));
    struct stat st;
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* ---- the bound ---- */

static void set_age(const zc_cache_key *key, long seconds)
{
    char path[192];
    struct timespec now, times[2];
    clock_gettime(CLOCK_REALTIME, &now);
    times[0] = times[1] = (struct timespec){.tv_sec = now.tv_sec - seconds};
    path_of(key, path, sizeof path);
    assert_int_equal(utimensat(-1, path, times, 0), 0);
}

static void test_bound_on_size(void **state)
{
    (void)state;
    enum { N = 10, LEN = 960, FILE_BYTES = LEN + 40 };
    char code[LEN] = {0};
    char stranger[128];
    zc_cache_stats stats;
    snprintf(stranger, sizeof stranger, "%s/not-ours.txt", folder);
    write_file(stranger, code, sizeof code);
    for (unsigned i = 0; i < N; i++) {
        zc_cache_key key = made_up_key(i);
        zc_cache_put(&key, code, LEN, ZC_CACHE_BYTES_MAX);
        set_age(&key, 1000 - i);
    }
    assert_int_equal(zc_cache_look(ZC_CACHE_KERNELS, &stats, NULL), ZC_OK);
    assert_int_equal(stats.files, N);
    assert_int_equal(stats.bytes, N * FILE_BYTES);
    zc_cache_key first = made_up_key(0), next = made_up_key(100);
    assert_true(holds(&first, code, LEN)); /* used now: stays longest */
    zc_cache_put(&next, code, LEN, 4 * FILE_BYTES);
    assert_int_equal(zc_cache_look(ZC_CACHE_KERNELS, &stats, NULL), ZC_OK);
    assert_int_equal(stats.files, 4);
    assert_true(holds(&first, code, LEN));
    assert_true(holds(&next, code, LEN));
    for (unsigned i = 1; i < N; i++) {
        zc_cache_key key = made_up_key(i);
        assert_int_equal(holds(&key, code, LEN), i >= N - 2);
    }
    assert_int_equal(zc_cache_trim(FILE_BYTES + FILE_BYTES / 2, &stats, NULL), ZC_OK);
    assert_int_equal(stats.files, 3);
    assert_int_equal(stats.bytes, 3 * FILE_BYTES);
    assert_int_equal(zc_cache_trim(0, &stats, NULL), ZC_OK);
    assert_int_equal(stats.files, 1);
    assert_int_equal(access(stranger, F_OK), 0);
}

/* ---- processes at once ---- */

/* Every process writes and reads the same few entries, whose bytes follow from the key, under a
 * bound that removes some all the time: what is read is whole or absent. */
static int writer(unsigned seed)
{
    enum { ROUNDS = 150, KEYS = 6, LEN = 30000 };
    static char code[LEN];
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n = (round * 7 + seed) % KEYS;
        zc_cache_key key = made_up_key(n);
        zc_buf got = {0};
        memset(code, (int)n + 1, sizeof code);
        if (zc_cache_get(&key, &got) && (got.len != LEN || memcmp(got.data, code, LEN) != 0))
            return 1;
        zc_buf_fini(&got);
        zc_cache_put(&key, code, LEN, round % 3 ? ZC_CACHE_BYTES_MAX : 3 * LEN);
    }
    return 0;
}

static void test_processes_at_once(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    pid_t pids[PROCESSES];
    char command[160];
    fflush(NULL);
    for (unsigned i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) _exit(writer(i));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    snprintf(command, sizeof command, "test -z \"$(find %s -name '.zc-*')\"", folder);
    assert_int_equal(system(command), 0); /* no temporaries */
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_what_a_key_tells_apart),
        T(test_builds_of_one_version),
        T(test_damaged_entries),
        T(test_damaged_entry_is_compiled_again),
        T(test_folders_that_cannot_be_written),
        T(test_missing_folders_are_made),
        T(test_bound_on_size),
        T(test_processes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
