#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* A fresh directory; tests name files relative to it. */
typedef struct fixture {
    char dir[64];
    int old_cwd;
    zc_diag *diag;
} fixture;

static void put(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    strcpy(f->dir, "/tmp/zc_test_file_XXXXXX");
    f->old_cwd = open(".", O_PATH | O_DIRECTORY);
    if (!mkdtemp(f->dir) || chdir(f->dir) != 0) return -1;
    f->diag = zc_diag_create();
    *state = f;
    return mkdir("root", 0755) || mkdir("root/sub", 0755);
}

static void remove_all(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        struct stat st;
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            remove_all(path);
        else
            unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

static int teardown(void **state)
{
    fixture *f = *state;
    const int moved = fchdir(f->old_cwd);
    close(f->old_cwd);
    remove_all(f->dir);
    zc_diag_destroy(&f->diag);
    free(f);
    return moved;
}

static size_t count_entries(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    size_t n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static void assert_content(const char *path, const char *text)
{
    uint8_t *data = NULL;
    size_t len = 0;
    assert_int_equal(zc_file_read(path, 1 << 20, &data, &len, NULL), ZC_OK);
    assert_int_equal(len, strlen(text));
    assert_string_equal((char *)data, text); /* the NUL after the data included */
    free(data);
}

static void test_read(void **state)
{
    fixture *f = *state;
    put("a", "hello");
    put("empty", "");
    assert_content("a", "hello");
    assert_content("empty", "");
    uint8_t *data = NULL;
    size_t len = 0;
    assert_int_equal(zc_file_read("a", 5, &data, &len, f->diag), ZC_OK);
    free(data);
    data = NULL;
    assert_int_equal(zc_file_read("a", 4, &data, &len, f->diag), ZC_ERR_LIMIT);
    assert_int_equal(zc_file_read("none", 9, &data, &len, f->diag), ZC_ERR_IO);
    assert_int_equal(zc_file_read("root", 9, &data, &len, f->diag), ZC_ERR_IO);
    assert_int_equal(zc_file_read("/dev/zero", 9, &data, &len, f->diag), ZC_ERR_IO);
    assert_null(data);
    assert_string_equal(zc_diag_text(f->diag, 0),
                        "a: the file is too large (got 5 bytes, need at most 4)");
    assert_string_equal(zc_diag_text(f->diag, 1), "none: cannot open (No such file or directory)");
    assert_string_equal(zc_diag_text(f->diag, 2),
                        "root: cannot read (got a directory, need a regular file)");
    assert_string_equal(zc_diag_text(f->diag, 3),
                        "/dev/zero: cannot read (got a device, need a regular file)");
}

static void test_fifo_does_not_block(void **state)
{
    fixture *f = *state;
    int fd = -1;
    uint64_t size;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    alarm(10);
    assert_int_equal(zc_file_open("fifo", &fd, &size, f->diag), ZC_ERR_IO);
    alarm(0);
    assert_int_equal(fd, -1);
}

static void test_pread(void **state)
{
    fixture *f = *state;
    int fd;
    uint64_t size;
    char buf[8] = {0};
    put("a", "0123456789");
    assert_int_equal(zc_file_open("a", &fd, &size, f->diag), ZC_OK);
    assert_int_equal(size, 10);
    assert_int_equal(zc_file_pread(fd, buf, 4, 3, "a", f->diag), ZC_OK);
    assert_string_equal(buf, "3456");
    assert_int_equal(zc_file_pread(fd, buf, 0, 10, "a", f->diag), ZC_OK);
    assert_int_equal(zc_file_pread(fd, buf, 4, 8, "a", f->diag), ZC_ERR_IO);
    assert_string_equal(zc_diag_text(f->diag, 0),
                        "a: the file is too short (got 2 bytes at offset 8, need 4)");
    assert_int_equal(zc_file_pread(fd, buf, 4, UINT64_MAX - 1, "a", f->diag), ZC_ERR_FORMAT);
    assert_int_equal(zc_file_pread(fd, buf, 4, INT64_MAX, "a", f->diag), ZC_ERR_FORMAT);
    close(fd);
}

static zc_status open_below(const char *location, zc_diag *diag)
{
    int fd = -1;
    uint64_t size = 0;
    const zc_status status = zc_file_open_beneath("root", location, &fd, &size, diag);
    if (status == ZC_OK) {
        char buf[3] = {0};
        if (size != 2 || pread(fd, buf, 2, 0) != 2 || strcmp(buf, "in") != 0)
            return ZC_ERR_INTERNAL;
        close(fd);
    } else if (fd != -1) {
        return ZC_ERR_INTERNAL;
    }
    return status;
}

static void make_tree(void)
{
    put("secret", "no");
    put("root/w.bin", "in");
    put("root/sub/w.bin", "in");
    put("root/...", "in");
    assert_int_equal(symlink("../secret", "root/out"), 0);
    assert_int_equal(symlink("/etc/passwd", "root/abs"), 0);
    assert_int_equal(symlink("..", "root/up"), 0);
    assert_int_equal(symlink("loop", "root/loop"), 0);
    assert_int_equal(symlink("sub/w.bin", "root/in"), 0);
    assert_int_equal(symlink("/proc/self/cwd", "root/magic"), 0);
    assert_int_equal(mkfifo("root/fifo", 0600), 0);
}

static const char *const accepted[] = {"w.bin", "sub/w.bin", "./w.bin", "sub//w.bin", "..."};
static const char *const refused[] = {
    "",
    "/etc/passwd",
    "..",
    "../secret",
    "sub/../w.bin",
    "sub/../../secret",
    ".",
    "./",
    "sub/",
    "sub\\w.bin",
    "C:\\w.bin",
    "c:w.bin",
    "http://x",
    "file:///etc/passwd",
    "out",
    "abs",
    "up/secret",
    "loop",
    "magic/secret",
    "fifo",
    "sub",
    "none",
    "w.bin/x",
};

static void test_beneath(void **state)
{
    fixture *f = *state;
    make_tree();
    for (size_t i = 0; i < ZC_COUNTOF(accepted); i++)
        assert_int_equal(open_below(accepted[i], f->diag), ZC_OK);
    assert_int_equal(zc_diag_count(f->diag), 0);
    alarm(10);
    for (size_t i = 0; i < ZC_COUNTOF(refused); i++) {
        const zc_status status = open_below(refused[i], f->diag);
        assert_true(status == ZC_ERR_MODEL || status == ZC_ERR_IO);
        assert_int_equal(zc_diag_count(f->diag), i + 1);
    }
    alarm(0);
    char *big = malloc(70001);
    assert_non_null(big);
    memset(big, 'a', 70000);
    big[70000] = '\0';
    assert_int_equal(open_below(big, f->diag), ZC_ERR_MODEL);
    free(big);
    int fd;
    uint64_t size;
    assert_int_equal(zc_file_open_beneath("nowhere", "w.bin", &fd, &size, f->diag), ZC_ERR_IO);
    assert_int_equal(chdir("root"), 0);
    assert_int_equal(zc_file_open_beneath("", "w.bin", &fd, &size, f->diag), ZC_OK);
    close(fd);
}

/* Makes openat2 answer ENOSYS in this process, as kernels before 5.6 do. */
static bool without_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ZC_COUNTOF(code), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(SYS_openat2, AT_FDCWD, ".", NULL, 0) == -1 && errno == ENOSYS;
}

enum { NO_FILTER = 77 };

/* 0, or 1 + the index of the location that went wrong. */
static int check_fallback(void)
{
    if (!without_openat2()) return NO_FILTER;
    alarm(10);
    for (size_t i = 0; i < ZC_COUNTOF(accepted); i++)
        if (open_below(accepted[i], NULL) != ZC_OK) return (int)i + 1;
    for (size_t i = 0; i < ZC_COUNTOF(refused); i++) {
        const zc_status status = open_below(refused[i], NULL);
        if (status != ZC_ERR_MODEL && status != ZC_ERR_IO) return (int)i + 101;
    }
    return open_below("in", NULL) == ZC_ERR_MODEL ? 0 : 200; /* a harmless link too */
}

static int wait_for(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_beneath_without_openat2(void **state)
{
    (void)state;
    make_tree();
    assert_int_equal(open_below("in", NULL), ZC_OK);
    const pid_t child = fork();
    if (child == 0) _exit(check_fallback());
    const int result = wait_for(child);
    if (result == NO_FILTER) skip();
    assert_int_equal(result, 0);
}

static void test_writer(void **state)
{
    fixture *f = *state;
    zc_writer *w = NULL;
    put("root/plan", "old");
    assert_int_equal(chmod("root/plan", 0751), 0);
    const mode_t old_mask = umask(0002);
    assert_int_equal(zc_writer_open("root/plan", &w, f->diag), ZC_OK);
    assert_int_equal(zc_writer_write(w, "0000", 4, f->diag), ZC_OK);
    assert_int_equal(zc_writer_write(w, "tail", 4, f->diag), ZC_OK);
    assert_int_equal(zc_writer_write(w, NULL, 0, f->diag), ZC_OK);
    assert_int_equal(zc_writer_pwrite(w, "head", 4, 0, f->diag), ZC_OK);
    assert_content("root/plan", "old");
    const void *view;
    size_t len;
    assert_int_equal(zc_writer_view(w, &view, &len, f->diag), ZC_OK);
    assert_int_equal(len, 8);
    assert_memory_equal(view, "headtail", 8);
    assert_int_equal(zc_writer_commit(&w, f->diag), ZC_OK);
    assert_null(w);
    assert_content("root/plan", "headtail");
    assert_int_equal(count_entries("root"), 2);
    struct stat st;
    assert_int_equal(stat("root/plan", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751); /* the old file's */
    /* a new file in the current directory */
    assert_int_equal(zc_writer_open("new", &w, f->diag), ZC_OK);
    assert_int_equal(zc_writer_view(w, &view, &len, f->diag), ZC_ERR_IO);
    assert_int_equal(zc_writer_commit(&w, f->diag), ZC_OK);
    assert_content("new", "");
    assert_int_equal(stat("new", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0664); /* as the mask has it */
    umask(old_mask);
}

static void test_writer_abort(void **state)
{
    fixture *f = *state;
    zc_writer *w = NULL;
    put("root/plan", "old");
    assert_int_equal(zc_writer_open("root/plan", &w, f->diag), ZC_OK);
    assert_int_equal(zc_writer_write(w, "new", 3, f->diag), ZC_OK);
    assert_in_range(count_entries("root"), 2, 3); /* with a name, or without */
    zc_writer_abort(&w);
    assert_null(w);
    zc_writer_abort(&w);
    zc_writer_abort(NULL);
    assert_int_equal(count_entries("root"), 2);
    assert_content("root/plan", "old");
}

static void test_writer_misuse(void **state)
{
    fixture *f = *state;
    zc_writer *w = NULL;
    put("root/plan", "old");
    assert_int_equal(zc_writer_open("root/plan", &w, f->diag), ZC_OK);
    assert_int_equal(zc_writer_write(w, "ab", 2, f->diag), ZC_OK);
    assert_int_equal(zc_writer_pwrite(w, "xyz", 3, 0, f->diag), ZC_ERR_ARG);
    assert_int_equal(zc_writer_commit(&w, f->diag), ZC_ERR_IO); /* not after a failure */
    assert_content("root/plan", "old");
    assert_int_equal(count_entries("root"), 2);
}

/* EFBIG stands in for a full disk: the same path, with a short write before it. */
static void test_writer_full(void **state)
{
    fixture *f = *state;
    zc_writer *w = NULL;
    put("root/plan", "old");
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 1000, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char data[4096] = {0};
    const zc_status opened = zc_writer_open("root/plan", &w, f->diag);
    const zc_status written =
        opened == ZC_OK ? zc_writer_write(w, data, sizeof data, f->diag) : opened;
    const zc_status committed = opened == ZC_OK ? zc_writer_commit(&w, f->diag) : opened;
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(opened, ZC_OK);
    assert_int_equal(written, ZC_ERR_IO);
    assert_int_equal(committed, ZC_ERR_IO);
    assert_string_equal(zc_diag_text(f->diag, 0), "root/plan: cannot write (File too large)");
    assert_content("root/plan", "old");
    assert_int_equal(count_entries("root"), 2);
}

static void test_writer_targets(void **state)
{
    fixture *f = *state;
    zc_writer *w = NULL;
    const char *bad[] = {"",         "/dev/full", "/dev/null", "root", "root/", "nowhere/x",
                         "dangling", "root/new/", ".",         "..",   "fifo"};
    assert_int_equal(symlink("nothing/here", "dangling"), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    alarm(10);
    for (size_t i = 0; i < ZC_COUNTOF(bad); i++) {
        assert_int_not_equal(zc_writer_open(bad[i], &w, f->diag), ZC_OK);
        assert_null(w);
        assert_int_equal(zc_diag_count(f->diag), i + 1);
    }
    alarm(0);
    assert_int_equal(zc_writer_open(NULL, &w, f->diag), ZC_ERR_ARG);
    assert_string_equal(zc_diag_text(f->diag, 1),
                        "/dev/full: cannot replace (got a device, need a regular file)");
    assert_int_equal(count_entries("root"), 1);
    /* the file behind a link is replaced, the link stays */
    put("root/sub/real", "old");
    assert_int_equal(symlink("root/sub/real", "link"), 0);
    assert_int_equal(zc_writer_open("link", &w, f->diag), ZC_OK);
    assert_int_equal(zc_writer_write(w, "new", 3, f->diag), ZC_OK);
    assert_int_equal(zc_writer_commit(&w, f->diag), ZC_OK);
    struct stat st;
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_content("root/sub/real", "new");
}

/* A target that turns into a directory before the commit: the rename fails. */
static void test_writer_rename_fails(void **state)
{
    fixture *f = *state;
    zc_writer *w = NULL;
    assert_int_equal(zc_writer_open("root/plan", &w, f->diag), ZC_OK);
    assert_int_equal(mkdir("root/plan", 0755), 0);
    assert_int_equal(zc_writer_commit(&w, f->diag), ZC_ERR_IO);
    assert_null(w);
    assert_int_equal(count_entries("root"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_read),           TEST(test_fifo_does_not_block),     TEST(test_pread),
        TEST(test_beneath),        TEST(test_beneath_without_openat2), TEST(test_writer),
        TEST(test_writer_abort),   TEST(test_writer_misuse),           TEST(test_writer_full),
        TEST(test_writer_targets), TEST(test_writer_rename_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
