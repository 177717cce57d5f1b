#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

#include "base/mem.h"

bool zc_thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t mask, before;
    sigfillset(&mask);
    for (size_t i = 0; i < ZC_COUNTOF(faults); i++) sigdelset(&mask, faults[i]);
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    const bool started = pthread_create(out, NULL, fn, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
