/* A line on the terminal for what takes long. */
#ifndef ZC_CLI_PROGRESS_H
#define ZC_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include "zc/status.h"

typedef struct cli_progress {
    bool active; /* standard error is a terminal, and a thread draws */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int shown; /* columns on the terminal now */
    double start;
    char text[120];
} cli_progress;

/* From one second on, and only on a terminal, standard error shows the newest text and the seconds
 * that have passed. p stays where it is until cli_progress_end. */
void cli_progress_begin(cli_progress *p);
void cli_progress_set(cli_progress *p, const char *fmt, ...) ZC_PRINTF(2, 3);
/* Erases the line, so that something else can be printed. */
void cli_progress_hide(cli_progress *p);
void cli_progress_end(cli_progress *p);

#endif
