/* Ending by a signal without leaving files behind. */
#ifndef ZC_CLI_SIGNALS_H
#define ZC_CLI_SIGNALS_H

/* A folder for temporary files is named so, and the process has it open as long as it is there. */
#define CLI_TEMP_FOLDER "zc-temporary-"

/* Removes the folder and the files in it. */
void cli_remove_folder(const char *path);

/* SIGINT, SIGTERM and SIGHUP, unless they are ignored, remove the temporary files of writers at
 * work, and temporary folders, and then end the process as they would have. SIGXFSZ is ignored. To
 * be called before any thread starts, and again in a child after fork(): a thread waits for the
 * signals and all others block them, so that no handler that a library installs takes them away
 * (NVRTC does). */
void cli_catch_signals(void);

#endif
