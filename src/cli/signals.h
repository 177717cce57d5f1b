/* Ending by a signal without leaving files behind. */
#ifndef ZC_CLI_SIGNALS_H
#define ZC_CLI_SIGNALS_H

/* SIGINT, SIGTERM and SIGHUP, unless they are ignored, remove the temporary files of writers at
 * work and then end the process as they would have. SIGXFSZ is ignored. */
void cli_catch_signals(void);

#endif
