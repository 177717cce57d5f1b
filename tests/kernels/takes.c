/* The table's TAKES against the generators: every row of an operation that may carry pointwise work
 * is given work with an operand that lies in each of the ways, and of types that kernels load and
 * do not load. It must serve the step, with the work in its header, where the table says so (as
 * passes ask it before they fuse), and decline elsewhere. At the end all families have to take
 * something: one without a TAKES row would keep passes from fusing into its operations. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "op/kernels.h"

enum { ARCH = 90, WAYS = 5, WAYS_LEAST = 3 /* of results of one element a row */ };

typedef struct place {
    bool at_end;
    zc_dtype dtype; /* of what the work is done on */
    unsigned tried; /* ZC_LIES_ bits */
    int failed;
} place;

static bool own_work(const kc_case *c)
{
    return c->attrs && (strstr(c->attrs, "epilogue") || strstr(c->attrs, "prologue") ||
                        strstr(c->attrs, "also"));
}

/* How the work's operand lies, and its type. */
typedef struct operand {
    unsigned way;
    const char *type;
} operand;

/* A constant shape with 1 where the operand does not go on. */
static void operand_text(zc_shape to, const operand *o, zc_buf *out)
{
    const unsigned way = o->way;
    zc_buf_printf(out, "; %s[", o->type);
    for (int d = 0; d < to.rank; d++) {
        bool last = d + 1 == to.rank;
        bool goes_on = way == ZC_LIES_TILE || (way == ZC_LIES_ROW && last) ||
                       (way == ZC_LIES_COLUMN && !last) || (way == ZC_LIES_OTHER && d == 0);
        zc_buf_printf(out, "%s%lld", d ? "," : "", goes_on ? (long long)to.dims[d].k : 1LL);
    }
    zc_buf_puts(out, "]");
}

/* The case with work on this one operand. */
static void put_work(const kc_case *c, const zc_op_info *info, const place *p, zc_shape to,
                     const operand *o, zc_buf *in, zc_buf *attrs)
{
    int given = 1;
    zc_buf_puts(in, c->in);
    for (const char *at = c->in; *at; at++) given += *at == ';';
    for (; given < info->max_in; given++) zc_buf_puts(in, "; _");
    operand_text(to, o, in);
    const char *own = c->attrs ? c->attrs : "{}";
    zc_buf_append(attrs, own, strlen(own) - 1);
    zc_buf_printf(attrs, "%s%s = \"x0 + %s(x1)\"%s}", own[1] == '}' ? "" : ", ",
                  p->at_end ? "epilogue" : "prologue", zc_dtype_name(p->dtype),
                  p->at_end ? "" : ", prologue_inputs = 1");
}

static const zc_pvalue *value_of(const kc_program *p, bool at_end)
{
    const zc_pstep *s = &p->program.steps[0];
    return &p->program.values[at_end ? s->out[0] : s->in[0]];
}

static zc_shape shape_of(const kc_program *p, bool at_end)
{
    const zc_pvalue *v = value_of(p, at_end);
    return (zc_shape){.rank = v->rank, .dims = v->dims};
}

/* Is the work in the header of the kernel that serves? false: none serves. should: by the table. */
static bool serves(const kc_variant *v, const kc_sizes *sizes, place *p, bool *should,
                   zc_diag *diag)
{
    kc_program made;
    const int arch = ARCH;
    bool ok = kc_lower(v, sizes, 1, false, &arch, 1, &made, diag) == ZC_OK;
    if (ok) {
        const zc_pstep *s = &made.program.steps[0];
        int first =
            p->at_end ? zc_op_epilogue_first(zc_op_get(s->op), s->attrs) : zc_op_get(s->op)->max_in;
        const zc_pvalue *x = &made.program.values[s->in[first]];
        zc_shape in = {.rank = x->rank, .dims = x->dims};
        const zc_work work = {.at_end = p->at_end,
                              .bytes = p->at_end && zc_op_get(s->op)->flags & ZC_OPF_BYTES,
                              .dtype = p->dtype,
                              .to = shape_of(&made, p->at_end),
                              .n = 1,
                              .in = &in,
                              .types = &x->dtype};
        p->tried |= zc_lies(work.to, 1, &in);
        *should = !zc_takes_not(zc_family_takes(zc_family_find(v->c->family)), &work);
        ok = made.family && strstr(made.program.kernels[s->choices[0].kernel].spec,
                                   p->at_end ? "#define Z_FUSED 1\n" : "#define Z_PRE 1\n");
    } else {
        printf("FAIL %s\n", zc_diag_text(diag, 0));
    }
    kc_program_free(&made);
    return ok;
}

static void try_operand(const kc_variant *v, const kc_sizes *sizes, place *p, zc_shape to,
                        const operand *o)
{
    zc_buf in = {0}, attrs = {0};
    zc_diag *diag = zc_diag_create();
    zc_op op = zc_op_find(v->c->op, strlen(v->c->op));
    bool should = true; /* so a case that cannot be made fails */
    put_work(v->c, zc_op_get(op), p, to, o, &in, &attrs);
    kc_case c = *v->c;
    c.in = in.data;
    c.attrs = attrs.data;
    if (p->at_end) c.outs = NULL; /* work on a result that is the only one */
    kc_variant with = *v;
    with.c = &c;
    bool does = serves(&with, sizes, p, &should, diag);
    if (does != should) {
        printf("FAIL %s by %s (%s, %s): %s, and the table says otherwise\n", c.op, c.family, c.in,
               c.attrs, does ? "taken" : "declined");
        p->failed++;
    }
    zc_buf_fini(&in);
    zc_buf_fini(&attrs);
    zc_diag_destroy(&diag);
}

static void try_operands(const kc_variant *v, const kc_sizes *sizes, place *p, zc_shape to)
{
    static const char *const others[] = {"bool", "i8", "i64", "f64", "i4"};
    for (unsigned way = 1; way < 1u << WAYS; way <<= 1)
        try_operand(v, sizes, p, to, &(operand){way, zc_dtype_name(p->dtype)});
    for (size_t i = 0; i < ZC_COUNTOF(others); i++)
        try_operand(v, sizes, p, to, &(operand){ZC_LIES_SCALAR, others[i]});
}

typedef struct trial {
    const kc_variant *v;
    place *p;
} trial;

static bool try_sizes(void *user, const char *text)
{
    const trial *t = user;
    kc_sizes sizes;
    kc_program plain;
    const int arch = ARCH;
    zc_diag *diag = zc_diag_create();
    bool ok = kc_sizes_parse(text, &sizes) &&
              kc_lower(t->v, &sizes, 1, false, &arch, 1, &plain, diag) == ZC_OK;
    if (ok && plain.family) {
        t->p->dtype = value_of(&plain, t->p->at_end)->dtype;
        try_operands(t->v, &sizes, t->p, shape_of(&plain, t->p->at_end));
    }
    if (ok) kc_program_free(&plain);
    zc_diag_destroy(&diag);
    return t->p->tried + 1 < 1u << WAYS;
}

static bool try_type(void *user, const char *pair)
{
    trial *t = user;
    kc_variant v;
    const kc_case *c = t->v->c;
    const unsigned flags = zc_op_get(zc_op_find(c->op, strlen(c->op)))->flags;
    if (!kc_variant_of(c, pair, &v)) return true;
    if (!zc_dtype_is_float(zc_dtype_parse(v.t)) && !(flags & ZC_OPF_BYTES)) return true;
    trial one = {&v, t->p};
    kc_each(c->sizes ? c->sizes : "a=1", ';', try_sizes, &one);
    return false;
}

int kc_check_takes(const char *op, const char *family)
{
    unsigned flags = zc_op_get(zc_op_find(op, strlen(op)))->flags;
    place places[] = {{.at_end = true}, {.at_end = false}};
    int failed = 0;
    /* No kernel takes work on sums of integers; what a pass gives is its own and its kernels'
     * affair. */
    if (flags & (ZC_OPF_SUMS | ZC_OPF_GIVEN_EPILOGUE)) return 0;
    if ((flags & ZC_OPF_EPILOGUE) && !zc_family_takes(zc_family_find(family)).at_end) {
        printf("FAIL %s takes no work at its end: passes fuse none into %s\n", family, op);
        failed++;
    }
    for (int i = 0; i < 2; i++) {
        place *p = &places[i];
        if (!(flags & (p->at_end ? ZC_OPF_EPILOGUE : ZC_OPF_PROLOGUE))) continue;
        for (size_t c = 0; c < kc_case_count; c++) {
            if (strcmp(kc_cases[c].op, op) != 0 || strcmp(kc_cases[c].family, family) != 0 ||
                own_work(&kc_cases[c]) || kc_cases[c].pitched || /* not the first step */
                kc_cases[c].flags & KC_BENCH_ONLY)               /* no sizes to run with */
                continue;
            kc_variant v = {.c = &kc_cases[c]};
            trial t = {&v, p};
            kc_each(kc_cases[c].types, ' ', try_type, &t);
        }
        printf("%s by %s, %s: %d of %d ways\n", op, family, p->at_end ? "end" : "start",
               __builtin_popcount(p->tried), WAYS);
        if (__builtin_popcount(p->tried) < WAYS_LEAST) {
            printf("FAIL %s by %s: too few cases without work of their own\n", op, family);
            p->failed++;
        }
        failed += p->failed;
    }
    return failed;
}
