/* Symbolic integers: dimensions and the elements of small shape tensors.
 *
 * A zc_dim is a constant or a reference into a zc_dims table of hash-consed expressions. Equal
 * expressions have equal references, because every constructor brings its result to one normal
 * form (sums of products with sorted factors). A symbol is an input dimension (named by the model)
 * or an unknown that a step binds at run time. Symbols used as dimensions are >= 0. */
#ifndef ZC_OP_DIM_H
#define ZC_OP_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

typedef struct zc_dim {
    int64_t k;  /* the value when e is 0, else 0 */
    uint32_t e; /* 0, or 1 + index of an expression */
} zc_dim;

typedef enum zc_dim_kind {
    ZC_DIM_SYM,  /* a symbol */
    ZC_DIM_ADD,  /* a + b */
    ZC_DIM_MUL,  /* a * b */
    ZC_DIM_DIV,  /* floor(a / b) */
    ZC_DIM_CDIV, /* ceil(a / b) */
    ZC_DIM_MOD,  /* a - b*floor(a/b) */
    ZC_DIM_MAX,
    ZC_DIM_MIN
} zc_dim_kind;

typedef struct zc_dim_node {
    zc_dim_kind kind;
    zc_dim a, b;      /* operands; refer to earlier nodes only */
    const char *name; /* SYM: owned by the table; unique among the symbols of equal is_input */
    bool is_input;    /* SYM: bound by an input's shape rather than by a step */
    bool dynamic;     /* depends on a symbol that is not an input's */
    int64_t lo, hi;   /* bounds when all symbols are >= 0; INT64_MIN, INT64_MAX: unbounded */
} zc_dim_node;

typedef struct zc_dims {
    zc_arena arena;
    zc_dim_node *nodes;
    size_t count, cap;
    uint32_t *table; /* hash index */
    size_t table_cap;
    unsigned next_fresh;
    bool failed; /* memory ran out; results since then are not to be trusted: check once at the end
                  */
} zc_dims;

void zc_dims_init(zc_dims *t);
void zc_dims_fini(zc_dims *t);
/* A table of its own with src's expressions, under the same references, to try things in; src must
 * outlive it. */
bool zc_dims_fork(zc_dims *t, const zc_dims *src);
/* Forgets all expressions but keeps the memory: the same ones again allocate nothing. */
void zc_dims_reset(zc_dims *t);

static inline zc_dim zc_dim_const(int64_t k)
{
    return (zc_dim){.k = k, .e = 0};
}
static inline bool zc_dim_is_const(zc_dim d)
{
    return d.e == 0;
}
static inline bool zc_dim_eq(zc_dim a, zc_dim b)
{
    return a.k == b.k && a.e == b.e;
}
static inline bool zc_dim_is(zc_dim d, int64_t k)
{
    return d.e == 0 && d.k == k;
}

/* The symbol of that name, made on first use. */
zc_dim zc_dim_input(zc_dims *t, const char *name);
/* A new symbol "?N", bound at run time. */
zc_dim zc_dim_fresh(zc_dims *t);

/* Constants fold; a fold that overflows or divides by zero gives a fresh symbol. t may be NULL when
 * both are constants; then such a fold gives INT64_MIN, which no dimension can be. A symbolic
 * divisor is taken to be nonzero: (a*b)/b is a. MAX and MIN fold when the order of the operands is
 * certain for input symbols >= 0; other symbols count as able to be negative there. */
zc_dim zc_dim_add(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_sub(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_mul(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_div(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_cdiv(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_mod(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_max(zc_dims *t, zc_dim a, zc_dim b);
zc_dim zc_dim_min(zc_dims *t, zc_dim a, zc_dim b);

/* The one of these that texts write as +, -, *, /, %, cdiv, max or min; NULL: none. */
typedef zc_dim zc_dim_fn(zc_dims *t, zc_dim a, zc_dim b);
zc_dim_fn *zc_dim_fn_of(const char *word, size_t len);

/* What is certain when all symbols, input or not, are >= 0 (false: not provable). */
bool zc_dim_known_ge(const zc_dims *t, zc_dim a, int64_t k);

/* Is a equal to b wherever it broadcasts to b, that is never 1 beside a larger b? */
bool zc_dim_covers(const zc_dims *t, zc_dim a, zc_dim b);

/* True when a symbol that is not an input's occurs in d. */
bool zc_dim_dynamic(const zc_dims *t, zc_dim d);

/* Evaluates all nodes in order into values[count]; symbols' values are given in values[]
 * beforehand. Returns false on overflow or division by zero in node *bad. */
bool zc_dims_eval(const zc_dim_node *nodes, size_t count, int64_t *values, size_t *bad);
static inline int64_t zc_dim_value(zc_dim d, const int64_t *values)
{
    return d.e ? values[d.e - 1] : d.k;
}

/* Appends d as text, e.g. "2*batch*seq+(seq+1)/2": / is floor division, % goes with it, and the
 * rest is cdiv(a,b), max(a,b), min(a,b). Names that are not identifiers stand in double quotes with
 * \xNN escapes. Text beyond a nesting or length bound becomes "..." and does not parse. */
void zc_dim_print(const zc_dims *t, zc_dim d, zc_buf *out);
/* Parses what zc_dim_print writes: names become input symbols unless they begin with '?'. Nesting
 * is bounded. Returns the number of characters read, or 0 on a syntax error. */
size_t zc_dim_parse(zc_dims *t, const char *text, size_t len, zc_dim *out);

#endif
