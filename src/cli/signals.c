#include "cli/signals.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Descriptors are given out from the lowest; writers have few files open at a time. */
#define DESCRIPTORS_MAX 256

static size_t put_number(char *out, int n)
{
    char digits[12];
    size_t len = 0, i = 0;
    do digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    while (len) out[i++] = digits[--len];
    out[i] = 0;
    return i;
}

static int is_temporary(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? strlen(slash + 1) : 0, begin = strlen(ZC_TEMP_BEGIN),
           end = strlen(ZC_TEMP_END);
    return n > begin + end && strncmp(slash + 1, ZC_TEMP_BEGIN, begin) == 0 &&
           strcmp(slash + 1 + n - end, ZC_TEMP_END) == 0;
}

/* The process's own temporaries are those that it has open for writing. Only functions that are
 * safe in a signal handler. */
static void remove_temporaries(void)
{
    static const char prefix[] = "/proc/self/fd/";
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++) {
        char link[sizeof prefix + 12], path[PATH_MAX];
        memcpy(link, prefix, sizeof prefix);
        put_number(link + sizeof prefix - 1, fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n <= 0) continue;
        path[n] = 0;
        int flags = fcntl(fd, F_GETFL);
        if (is_temporary(path) && flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) unlink(path);
    }
}

static void on_signal(int number)
{
    remove_temporaries();
    /* SA_RESETHAND and SA_NODEFER: the default action, at once. */
    raise(number);
}

void cli_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    /* A write past a limit on file sizes fails then, and is reported as any other. */
    (void)signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old,
            ours = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_NODEFER};
        sigemptyset(&ours.sa_mask);
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &ours, NULL);
    }
}
