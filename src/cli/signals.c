#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Descriptors are given out from the lowest; writers have few files open at a time. */
#define DESCRIPTORS_MAX 256
#define STACK_BYTES     ((size_t)128 << 10)

static int is_temporary(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? strlen(slash + 1) : 0, begin = strlen(ZC_TEMP_BEGIN),
           end = strlen(ZC_TEMP_END);
    return n > begin + end && strncmp(slash + 1, ZC_TEMP_BEGIN, begin) == 0 &&
           strcmp(slash + 1 + n - end, ZC_TEMP_END) == 0;
}

/* The process's own temporaries are those that it has open for writing. */
static void remove_temporaries(void)
{
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++) {
        char link[32], path[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n <= 0) continue;
        path[n] = 0;
        int flags = fcntl(fd, F_GETFL);
        if (is_temporary(path) && flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) unlink(path);
    }
}

/* The signals that end the process by way of remove_temporaries: those not ignored at the start. */
static void ending_signals(sigset_t *set)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, numbers[i]);
    }
}

typedef struct watched {
    sigset_t set;
    sem_t begun;
} watched;

/* The thread allocates and frees nothing: malloc would take 64 MiB of address space for it, at a
 * moment that nobody knows, which little room for oneDNN's code cannot bear. */
static void *watch(void *arg)
{
    watched *w = arg;
    int number;
    sem_post(&w->begun);
    while (sigwait(&w->set, &number) == 0) {
        remove_temporaries();
        (void)signal(number, SIG_DFL);
        pthread_sigmask(SIG_UNBLOCK, &w->set, NULL);
        raise(number);
    }
    return NULL;
}

void cli_catch_signals(void)
{
    static watched w; /* the thread's, to the end */
    pthread_attr_t attr;
    pthread_t thread;
    /* A write past a limit on file sizes fails then, and is reported as any other. */
    (void)signal(SIGXFSZ, SIG_IGN);
    ending_signals(&w.set);
    sem_init(&w.begun, 0, 0);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_BLOCK, &w.set, NULL);
    /* Until it runs a sanitizer's allocator may be at work for it, whose locks a fork would copy as
     * they are. */
    if (pthread_create(&thread, &attr, watch, &w) == 0)
        while (sem_wait(&w.begun) != 0 && errno == EINTR) continue;
    else
        pthread_sigmask(SIG_UNBLOCK, &w.set, NULL);
    pthread_attr_destroy(&attr);
}
