/* From a node's domain and operator to what is done with it: the table onnx_ops.def. */
#include "import/importer.h"
#include "import/steps.h"

#define ANY INT64_MAX

/* Steps, in the order in which they are applied. */
static const struct {
    const char *domain, *op_type;
    int64_t below; /* applied to versions less than this */
    zc_step_fn fn;
    bool builds; /* every version, so that no operation of its name is needed */
} steps[] = {
#define STEP(domain, op_type, below, fn) {domain, op_type, below, zc_step_##fn, false},
#define BUILD(domain, op_type, fn)       {domain, op_type, ANY, zc_step_##fn, true},
#include "import/onnx_ops.def"
};

/* Operators that are an operation of another name. */
static const struct {
    const char *domain, *op_type;
    zc_op op;
} aliases[] = {
#define ALIAS(domain, op_type, op) {domain, op_type, ZC_OP_##op},
#include "import/onnx_ops.def"
};

/* Operators that models have and that are not read. */
static const struct {
    const char *domain, *op_type, *why;
} refusals[] = {
#define REFUSED(domain, op_type, why) {domain, op_type, why},
#include "import/onnx_ops.def"
};

const char *zc_iop_refusal(const char *domain, const char *op_type)
{
    for (size_t i = 0; i < ZC_COUNTOF(refusals); i++)
        if (strcmp(refusals[i].domain, domain) == 0 && strcmp(refusals[i].op_type, op_type) == 0)
            return refusals[i].why;
    return NULL;
}

/* Operators whose inputs may be sequences or optionals. */
static const struct {
    const char *domain, *op_type;
} composites[] = {
#define COMPOSITE(domain, op_type) {domain, op_type},
#include "import/onnx_ops.def"
};

/* Operations that the default domain does not have. */
static const zc_op internal[] = {
#define INTERNAL(op) ZC_OP_##op,
#include "import/onnx_ops.def"
};

/* Other domains whose operators are the default domain's. */
static const char *const same_domains[] = {
#define SAME_DOMAIN(domain) domain,
#include "import/onnx_ops.def"
};

const char *zc_imp_domain(const char *domain)
{
    domain = zc_text(domain);
    for (size_t i = 0; i < ZC_COUNTOF(same_domains); i++)
        if (strcmp(domain, same_domains[i]) == 0) return "";
    return domain;
}

/* ---- versions ---- */

static bool version_in(Onnx__OperatorSetIdProto **opsets, size_t n, const char *domain,
                       int64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(zc_imp_domain(opsets[i]->domain), domain) != 0) continue;
        *out = opsets[i]->version;
        return true;
    }
    return false;
}

zc_status zc_imp_version(zc_imp *im, const char *domain, const char *subject, int64_t *out)
{
    for (const zc_frame *f = im->frame; f; f = f->caller)
        if (version_in(f->function->opset_import, f->function->n_opset_import, domain, out))
            return ZC_OK;
    if (version_in(im->model->opset_import, im->model->n_opset_import, domain, out)) return ZC_OK;
    *out = 1;
    /* Writers forget the domains of vendors, which have had one version for years. */
    if (*domain) return ZC_OK;
    return zc_fail(im->diag, ZC_ERR_MODEL, subject,
                   "the model imports no version of the default operator set (need %d to %d)",
                   ZC_OPSET_MIN, ZC_OPSET_MAX);
}

/* ---- operators ---- */

static bool is_internal(zc_op op)
{
    for (size_t i = 0; i < ZC_COUNTOF(internal); i++)
        if (internal[i] == op) return true;
    return false;
}

static zc_op operation(const char *domain, const char *op_type)
{
    for (size_t i = 0; i < ZC_COUNTOF(aliases); i++)
        if (strcmp(aliases[i].domain, domain) == 0 && strcmp(aliases[i].op_type, op_type) == 0)
            return aliases[i].op;
    if (*domain) return ZC_OP_NONE;
    zc_op op = zc_op_find(op_type, strlen(op_type));
    return is_internal(op) ? ZC_OP_NONE : op;
}

static bool takes_composites(const char *domain, const char *op_type)
{
    for (size_t i = 0; i < ZC_COUNTOF(composites); i++)
        if (strcmp(composites[i].domain, domain) == 0 &&
            strcmp(composites[i].op_type, op_type) == 0)
            return true;
    return false;
}

/* Rows of one operator stand together. */
static void find_steps(zc_iop *iop, const char *domain, const char *op_type)
{
    for (int i = 0; i < (int)ZC_COUNTOF(steps); i++) {
        if (strcmp(steps[i].domain, domain) != 0 || strcmp(steps[i].op_type, op_type) != 0)
            continue;
        if (!iop->nsteps++) iop->first_step = i;
        iop->known |= steps[i].builds;
    }
}

/* A row for an operator met for the first time. */
static const zc_iop *new_row(zc_imp *im, const char *domain, const char *op_type, const char *key)
{
    bool added;
    key = zc_arena_strdup(&im->arena, key);
    if (!key || !zc_smap_add(&im->iops, key, strlen(key), im->iop_rows.len, &added)) return NULL;
    zc_iop iop = {.op = operation(domain, op_type)};
    find_steps(&iop, domain, op_type);
    if (zc_custom_find(im->params->custom, domain, op_type)) {
        iop = (zc_iop){.op = ZC_OP_Custom, .known = true};
        return ZC_VEC_PUSH(&im->iop_rows, iop) ? &im->iop_rows.data[im->iop_rows.len - 1] : NULL;
    }
    const zc_smap_slot *f = zc_smap_find(&im->functions, key, strlen(key));
    const bool built_in = iop.known |= iop.op != ZC_OP_NONE;
    /* The standard's own functions have kernels; elsewhere the model's definition counts. */
    if (f && (*domain || !built_in)) iop.function = im->model->functions[f->value];
    iop.known |= iop.function != NULL;
    iop.composites = iop.function || takes_composites(domain, op_type);
    return ZC_VEC_PUSH(&im->iop_rows, iop) ? &im->iop_rows.data[im->iop_rows.len - 1] : NULL;
}

const zc_iop *zc_iop_find(zc_imp *im, const char *domain, const char *op_type, const char *overload)
{
    zc_buf key = {0};
    domain = zc_imp_domain(domain);
    zc_imp_function_key(&key, domain, op_type, overload);
    const zc_smap_slot *s = key.failed ? NULL : zc_smap_find(&im->iops, key.data, key.len);
    const zc_iop *row = NULL;
    if (s)
        row = &im->iop_rows.data[s->value];
    else if (!key.failed)
        row = new_row(im, domain, op_type, key.data);
    zc_buf_fini(&key);
    if (!row) zc_imp_nomem(im, "operators");
    return row;
}

/* Before opset 6 many operators had an attribute for an optimisation of those days. */
static void drop_consumed_inputs(zc_imp *im, zc_inode *n)
{
    zc_ints unused;
    if (!*n->domain && n->version < 6) zc_imp_take_ints(im, n, "consumed_inputs", &unused);
}

zc_status zc_iop_run(zc_imp *im, const zc_iop *iop, zc_inode *n)
{
    const zc_iop op = *iop; /* the rows move when regions bring new operators */
    n->op = op.op;
    if (n->op == ZC_OP_Custom) return zc_imp_custom(im, n);
    drop_consumed_inputs(im, n);
    for (int i = op.first_step; i < op.first_step + op.nsteps && !n->done; i++) {
        if (n->version >= steps[i].below) continue;
        ZC_TRY(steps[i].fn(im, n));
        if (im->status != ZC_OK) return im->status;
    }
    return n->done ? ZC_OK : zc_imp_finish_plain(im, n);
}
