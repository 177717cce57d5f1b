/* The measurements that zc brings along, embedded from tuned/. */
#ifndef ZC_TUNE_BUILTIN_H
#define ZC_TUNE_BUILTIN_H

typedef struct zc_tuned_file {
    const char *name, *text;
} zc_tuned_file;

/* Ends with a name of NULL. */
extern const zc_tuned_file zc_tuned_files[];

#endif
