/* The ONNX operators that the importer reads, as docs/operators.md. */
#include <stdlib.h>
#include <string.h>

#include "cli/inspect.h"
#include "import/importer.h"

#define ANY INT64_MAX

/* A row of onnx_ops.def. */
typedef struct row {
    const char *domain, *op_type;
    int64_t below;       /* of a STEP */
    const char *becomes; /* of an ALIAS: the operation */
    bool builds;
} row;

static const row rows[] = {
#define STEP(domain, op_type, below, fn)  {domain, op_type, below, NULL, false},
#define BUILD(domain, op_type, fn)        {domain, op_type, ANY, NULL, true},
#define ALIAS(domain, op_type, operation) {domain, op_type, ANY, #operation, false},
#include "import/onnx_ops.def"
};

static const char *const internal[] = {
#define INTERNAL(op) #op,
#include "import/onnx_ops.def"
};

static bool is_internal(const char *name)
{
    for (size_t i = 0; i < ZC_COUNTOF(internal); i++)
        if (strcmp(internal[i], name) == 0) return true;
    return false;
}

/* An operation that an operator of the default domain becomes by its name alone. */
static bool is_operation(const char *domain, const char *name)
{
    return !*domain && zc_op_find(name, strlen(name)) != ZC_OP_NONE && !is_internal(name);
}

typedef struct names {
    const char **v;
    size_t n;
} names;

static void add(names *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0) return;
    list->v[list->n++] = name;
}

static bool is_known(const char *domain, const char *name)
{
    if (is_operation(domain, name)) return true;
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++)
        if (strcmp(rows[i].domain, domain) == 0 && strcmp(rows[i].op_type, name) == 0 &&
            (rows[i].builds || rows[i].becomes))
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of a domain's operators, sorted. The list has room for all. */
static void collect(const char *domain, names *list)
{
    for (int op = 1; op < ZC_OP_COUNT && !*domain; op++) {
        const char *name = zc_op_get((zc_op)op)->name;
        if (!is_internal(name)) add(list, name);
    }
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++)
        if (strcmp(rows[i].domain, domain) == 0 && is_known(domain, rows[i].op_type))
            add(list, rows[i].op_type);
    if (list->n) qsort(list->v, list->n, sizeof *list->v, by_name);
}

/* "1-6, 7-8, 9 on": versions of the operator set, by the form that their nodes have. */
static void put_versions(const char *domain, const char *name)
{
    int64_t first = ZC_OPSET_MIN, last = 0;
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        const row *r = &rows[i];
        if (strcmp(r->domain, domain) != 0 || strcmp(r->op_type, name) != 0) continue;
        if (r->below == ANY || r->below == last) continue;
        last = r->below;
        if (r->below - 1 > first)
            printf("%lld-%lld, ", (long long)first, (long long)r->below - 1);
        else
            printf("%lld, ", (long long)first);
        first = r->below;
    }
    printf(*domain ? "%lld on" : "%lld-%d", (long long)first, ZC_OPSET_MAX);
}

static void put_operator(const char *domain, const char *name)
{
    bool builds = false;
    const char *becomes = is_operation(domain, name) ? name : NULL;
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        if (strcmp(rows[i].domain, domain) != 0 || strcmp(rows[i].op_type, name) != 0) continue;
        builds |= rows[i].builds;
        if (rows[i].becomes) becomes = rows[i].becomes;
    }
    printf("| %s | ", name);
    put_versions(domain, name);
    if (builds)
        puts(" | expanded |");
    else
        printf(" | %s |\n", becomes && strcmp(becomes, name) != 0 ? becomes : "");
}

static void put_domain(const char *domain, names *list)
{
    list->n = 0;
    collect(domain, list);
    printf(
        "\n## %s\n\n%zu operators.\n\n| operator | versions, by form | becomes |\n|---|---|---|\n",
        *domain ? domain : "ai.onnx", list->n);
    for (size_t i = 0; i < list->n; i++) put_operator(domain, list->v[i]);
}

static const char composites[] =
    "\n## Sequences and optionals\n\n"
    "They are resolved when a model is compiled, and a plan has tensors alone. A sequence among "
    "the "
    "inputs or outputs\nis the tensors NAME/0, NAME/1 and so on; how many an input has must be "
    "fixed: `zc compile --dim NAME/length=3`. An\noptional input is there, or, with `--dim "
    "NAME/present=0`, not; an optional output that is absent has no tensor. The\ntensors of a "
    "sequence have sizes of their own, whatever names the model gives to dimensions; `--shape "
    "NAME/0=2x3`\nfixes them. `SequenceMap` and a `Loop` that carries a sequence are unrolled; an "
    "`If` gives a sequence when both\nbranches give as many tensors, or the condition is known.\n\n"
    "What hangs on values that are known only at run time is refused with the node's name: a "
    "position in a sequence of\ntensors of several sizes, the number of parts or iterations, "
    "whether "
    "an optional is there. So are more than\n65,536 tensors in a sequence.\n";

static const char strings[] =
    "\n## Strings\n\n"
    "A plan has no strings. Its tensors have elements of one size, so that the memory of a run is "
    "planned from shapes\nalone, a GPU can hold them, and a caller binds them without a copy. "
    "Strings have lengths that only the run knows. In\nmodels they stand at the borders, as "
    "categories that come in and labels that go out, where the caller has a table for\nthem. So a "
    "model with tensors of strings among its inputs or constants is refused by their names, also "
    "where they would\nonly be moved or compared: Identity, Reshape, Gather, Slice, Concat, Where, "
    "Equal and so on of strings, and LabelEncoder\nfrom or to strings. What makes strings or looks "
    "into them is not read at all: RegexFullMatch, StringConcat, StringSplit,\nStringNormalizer, "
    "CategoryMapper, DictVectorizer, MurmurHash3, Tokenizer. 26 of ONNX 1.22's 1,765 node tests "
    "have strings, and all\nof these as inputs of the run, so that none would pass if constants "
    "alone were resolved: LabelEncoder 4, Equal 2,\nRegexFullMatch 3, StringConcat 5, StringSplit "
    "6, StringNormalizer 6.\n";

static const char notes[] =
    "\n## Notes\n\n"
    "- Where class labels are strings, the label is the index into classlabels_strings; ZipMap "
    "gives its input, a row of\n  scores in the classes' order. Both are said in a warning. "
    "LabelEncoder maps numbers to numbers.\n"
    "- Trees: base_values are added to every score, also one that no leaf of a row has a weight "
    "for "
    "(ONNX Runtime leaves\n  those at 0), and a class without a score is 0 when the best one is "
    "sought. Sums are f64. When all weights are for\n  class 0 of two, they are the second one's "
    "score: a probability (above 0.5) when none is negative, else above 0.\n"
    "- SVMClassifier: probabilities of two classes follow from the formula (ONNX Runtime stops an "
    "iteration within 0.005 of\n  it); those of more classes are refused, and so is one without "
    "vectors_per_class. SVMRegressor applies post_transform.\n"
    "- OneHotEncoder gives zeros for a category that is not listed, whatever `zeros` says. "
    "post_transform PROBIT is refused.\n"
    "- DynamicQuantizeLSTM: the state of each sequence has a scale of its own (ONNX Runtime's of "
    "several sequences\n  depends on its threads).\n"
    "- Sums of quantised products are exact. ONNX Runtime's of u8 and i8 may saturate in pairs on "
    "processors without VNNI.\n"
    "- GatherBlockQuantized: an index out of range is an error (ONNX Runtime gives zeros). "
    "NGramRepeatBlock: so is any token that\n  has no score. MatMulBnb4: weights are floats from "
    "the import on.\n"
    "- Known when a model is compiled must be crop_size of CropAndResize and the pads of "
    "ConvTransposeWithDynamicPads.\n";

/* What is not read: under each reason, in the order of the table. */
static void put_refusals(void)
{
    static const struct {
        const char *domain, *op_type, *why;
    } refusals[] = {
#define REFUSED(domain, op_type, why) {domain, op_type, why},
#include "import/onnx_ops.def"
    };
    puts("\n## Not read\n\n| operator | domain | why |\n|---|---|---|");
    for (size_t i = 0; i < ZC_COUNTOF(refusals); i++)
        printf("| %s | %s | %s |\n", refusals[i].op_type,
               *refusals[i].domain ? refusals[i].domain : "ai.onnx", refusals[i].why);
}

int cli_print_operators(void)
{
    names list = {.v = zc_calloc(ZC_OP_COUNT + ZC_COUNTOF(rows), sizeof *list.v)},
          domains = {.v = zc_calloc(1 + ZC_COUNTOF(rows), sizeof *domains.v)};
    int code = list.v && domains.v ? EXIT_OK : cli_report(NULL, ZC_ERR_NOMEM);
    if (!code) {
        printf("# ONNX operators\n\n"
               "Printed by `zc inspect --operators` from the tables that the importer works by; a "
               "test compares.\n\n"
               "zc reads models of opset %d to %d. Nodes of older forms are brought to the newest: "
               "the second column lists the\nranges of versions whose forms the importer tells "
               "apart. The third says what an operator becomes when that is\nnot the operation of "
               "its name: another operation, or several (expanded).\n",
               ZC_OPSET_MIN, ZC_OPSET_MAX);
        fputs(composites, stdout);
        fputs(strings, stdout);
        add(&domains, "");
        for (size_t i = 0; i < ZC_COUNTOF(rows); i++) add(&domains, rows[i].domain);
        qsort(domains.v, domains.n, sizeof *domains.v, by_name);
        for (size_t i = 0; i < domains.n; i++) put_domain(domains.v[i], &list);
        fputs(notes, stdout);
        put_refusals();
    }
    free(list.v);
    free(domains.v);
    return code;
}
