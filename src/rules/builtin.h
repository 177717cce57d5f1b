/* The rule files that zc brings along, embedded from rules/. */
#ifndef ZC_RULES_BUILTIN_H
#define ZC_RULES_BUILTIN_H

typedef struct zc_builtin_file {
    const char *name, *text;
} zc_builtin_file;

/* Ends with a name of NULL. */
extern const zc_builtin_file zc_builtin_rules[];

#endif
