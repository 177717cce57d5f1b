/* Ending by a signal without leaving files behind. */
#ifndef ZC_CLI_SIGNALS_H
#define ZC_CLI_SIGNALS_H

/* SIGINT, SIGTERM and SIGHUP, unless they are ignored, remove the temporary files of writers at
 * work and then end the process as they would have. SIGXFSZ is ignored. To
 * be called before any thread starts, and again in a child after fork(): a thread waits for the
 * signals and all others block them, so that no handler that a library installs takes them away
 * (NVRTC does). */
void cli_catch_signals(void);

#endif
