/* A problem's text as a program of one step, whose text is the normal form. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"
#include "tune/problem.h"

enum { VALUES_MOST = 32, WORD_MOST = 64 };

typedef struct reader {
    const char *at;
    zc_arena arena;
    zc_pvalue values[1 + VALUES_MOST]; /* the first stands for those that are absent */
    uint32_t nvalues;
    uint32_t in[VALUES_MOST], out[VALUES_MOST];
} reader;

static bool take(reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

/* What stands before one of these characters, which is next then. */
static bool word(reader *r, const char *ends, char out[WORD_MOST])
{
    size_t n = strcspn(r->at, ends);
    if (!r->at[n] || n >= WORD_MOST) return false;
    memcpy(out, r->at, n);
    out[n] = '\0';
    r->at += n;
    return true;
}

static bool read_dims(reader *r, zc_pvalue *v)
{
    zc_dim *dims = zc_arena_alloc(&r->arena, ZC_MAX_RANK, sizeof *dims);
    char text[WORD_MOST], *end;
    v->dims = dims;
    if (!dims || !take(r, "[")) return false;
    while (!take(r, "]")) {
        if (v->rank == ZC_MAX_RANK || (v->rank && !take(r, ",")) || !word(r, ",]", text))
            return false;
        errno = 0;
        dims[v->rank++] = zc_dim_const(strtoll(text, &end, 10));
        if (*text < '0' || *text > '9' || *end || errno) return false;
    }
    return true;
}

/* "f16[768,768]=", or "_". */
static bool read_value(reader *r, uint32_t *out)
{
    char name[WORD_MOST];
    *out = 0;
    if (take(r, "_")) return true;
    if (r->nvalues > VALUES_MOST || !word(r, "[", name)) return false;
    zc_pvalue v = {.dtype = zc_dtype_parse(name)};
    if (v.dtype == ZC_NONE || !read_dims(r, &v)) return false;
    v.kind = take(r, "=") ? ZC_P_CONST : ZC_P_STEP;
    *out = r->nvalues;
    r->values[r->nvalues++] = v;
    return true;
}

static bool read_values(reader *r, uint32_t *list, uint32_t *n)
{
    do {
        if (*n == VALUES_MOST || !read_value(r, &list[*n])) return false;
        ++*n;
    } while (take(r, ", "));
    return true;
}

static bool read_attrs(reader *r, zc_pstep *step)
{
    const zc_op_info *info = zc_op_get(step->op);
    void *attrs = zc_arena_alloc(&r->arena, 1, info->attrs_size);
    const char *end = strrchr(r->at, '}');
    step->attrs = attrs;
    if (!attrs) return false;
    zc_attrs_default(info, attrs);
    if (!take(r, " {")) return true;
    const char *text = r->at - 1;
    if (!end ||
        zc_attrs_parse(text, (size_t)(end + 1 - text), step->op, attrs, &r->arena, NULL) != ZC_OK)
        return false;
    r->at = end + 1;
    return true;
}

static bool read_problem(reader *r, zc_pstep *step)
{
    char name[WORD_MOST];
    *step = (zc_pstep){.in = r->in, .out = r->out};
    if (!word(r, "(", name) || !take(r, "(")) return false;
    step->op = zc_op_find(name, strlen(name));
    if (step->op == ZC_OP_NONE) return false;
    if (!take(r, ")") && (!read_values(r, r->in, &step->nin) || !take(r, ")"))) return false;
    if (!take(r, " -> ") || !read_values(r, r->out, &step->nout) || !read_attrs(r, step))
        return false;
    step->tf32 = take(r, " tf32");
    return !*r->at;
}

bool zc_problem_normal(const char *text, zc_buf *out)
{
    zc_pstep step;
    reader r = {.at = text, .nvalues = 1};
    zc_arena_init(&r.arena, 0);
    bool ok = read_problem(&r, &step);
    const zc_program p = {.values = r.values, .nvalues = r.nvalues, .steps = &step, .nsteps = 1};
    ok = ok && zc_problem_text(&p, &step, out);
    zc_arena_fini(&r.arena);
    return ok;
}
