/* Names: a string map, and the lexical scopes of a model's graphs and function bodies. */
#ifndef ZC_IMPORT_NAMES_H
#define ZC_IMPORT_NAMES_H

#include <string.h>

#include "import/load.h"
#include "ir/graph.h"

/* Strings to numbers. Keys are not copied: they outlive the map. */
typedef struct zc_smap_slot {
    const char *key; /* NULL: free */
    size_t len;
    size_t value;
} zc_smap_slot;

typedef struct zc_smap {
    zc_smap_slot *slots;
    size_t cap, count;
} zc_smap;

void zc_smap_fini(zc_smap *map);
/* NULL when absent. */
zc_smap_slot *zc_smap_find(const zc_smap *map, const char *key, size_t len);
/* The slot of key, made with that value when absent (*added). NULL: no memory. */
zc_smap_slot *zc_smap_add(zc_smap *map, const char *key, size_t len, size_t value, bool *added);

typedef enum zc_name_state {
    ZC_NAME_LATER,    /* a node that is not yet imported produces it */
    ZC_NAME_READY,    /* has a value */
    ZC_NAME_ABSENT,   /* an input of a function that the call leaves out */
    ZC_NAME_POISONED, /* comes from something unsupported, which has been reported */
    ZC_NAME_DROPPED   /* an output that the import cannot give; an error once it is used */
} zc_name_state;

#define ZC_NO_NODE SIZE_MAX

typedef struct zc_name {
    const char *text;
    const char *as;   /* name of the value in the graph, when another */
    const char *kind; /* what defines it unless a node does: "input", "initialiser" */
    size_t producer;  /* index of its node in the scope, or ZC_NO_NODE */
    zc_name_state state;
    zc_vid vid; /* READY */
} zc_name;

/* The names of one graph or function body. A graph inside a node sees those of the enclosing ones
 * and may hide them; a function body sees only its own. */
typedef struct zc_scope {
    struct zc_scope *parent;
    Onnx__NodeProto **nodes;
    size_t nnodes;
    size_t at;                     /* the node being imported */
    const char *prefix;            /* before the names of nodes of an inlined function, or NULL */
    const Onnx__GraphProto *graph; /* NULL: a function body */
    ZC_VEC(zc_name) names;
    zc_smap index; /* into names */
    zc_smap infos; /* into graph->value_info and, from SIZE_MAX down, output */
} zc_scope;

void zc_scope_fini(zc_scope *scope);
/* The name as this scope itself defines it, or NULL. */
zc_name *zc_scope_own(const zc_scope *scope, const char *text);
/* The name as seen from this scope. */
zc_name *zc_scope_find(const zc_scope *scope, const char *text);
/* Adds a name; an error naming both definers when it has one already. *out may be NULL. */
zc_status zc_scope_define(zc_scope *scope, const char *text, const char *kind, size_t producer,
                          zc_name **out, zc_diag *diag);
/* Why node scope->at cannot use `text`: a cycle, an unsorted graph, or a name that does not exist.
 */
zc_status zc_scope_missing(const zc_scope *scope, const char *text, const char *subject,
                           zc_diag *diag);

/* The node's name, or its operator and index ("Conv_12"), behind the scope's prefix. In arena;
 * NULL: no memory. */
const char *zc_scope_node_name(const zc_scope *scope, size_t i, zc_arena *arena);

/* protobuf leaves fields out: "" instead. */
static inline const char *zc_text(const char *s)
{
    return s ? s : "";
}

#endif
