/* Threads of zc's own. */
#ifndef ZC_BASE_THREAD_H
#define ZC_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that blocks every signal but those of a thread's own faults, which cannot wait:
 * the program's handlers run in its own threads. False when the system refuses. */
bool zc_thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg);

#endif
