/* report.html with its places filled. */
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>

#include "cli/report_html.h"
#include "cli/report_template.h"
#include "runtime/plan.h"

/* ---- places ---- */

/* What the browser may run: this style and this script alone, by their hashes. */
static void put_hash(zc_buf *out, const char *begin, const char *end)
{
    const char *from = strstr(report_template[0].text, begin) + strlen(begin);
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = "";
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, (size_t)(strstr(from, end) - from), (const uint8_t *)from);
    sha256_digest(&ctx, sizeof digest, digest);
    base64_encode_raw(text, sizeof digest, digest);
    zc_buf_printf(out, "sha256-%s", text);
}

static void put_style_hash(const report *r, const report_plan *p, zc_buf *out)
{
    put_hash(out, "<style>", "</style>");
}

static void put_script_hash(const report *r, const report_plan *p, zc_buf *out)
{
    put_hash(out, "<script>", "</script>");
}

static void put_title(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, r->plans[0].path);
    for (size_t i = 1; i < r->n; i++) {
        zc_buf_puts(out, ", ");
        report_text(out, r->plans[i].path);
    }
}

static void put_path(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, p->path);
}

static void put_number(const report *r, const report_plan *p, zc_buf *out)
{
    zc_buf_printf(out, "%zu", (size_t)(p - r->plans) + 1);
}

static void put_version(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, zc_version());
}

static void put_model(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, r->o->model);
}

static const struct place {
    const char *name;
    report_put *put;
} places[] = {
    {"style-hash", put_style_hash},
    {"script-hash", put_script_hash},
    {"title", put_title},
    {"version", put_version},
    {"summary", report_summary},
    {"comparison", report_comparison},
    {"compared-operations", report_compared_operations},
    {"path", put_path},
    {"number", put_number},
    {"runs", report_runs},
    {"roofline", report_roofline},
    {"timeline", report_timeline},
    {"operations", report_operations},
    {"steps", report_steps},
    {"memory", report_memory},
    {"cpu-steps", report_cpu_steps},
    {"rules", report_rules},
    {"fusions", report_fusions},
    {"model", put_model},
    {"accuracy", report_accuracies},
};

/* ---- parts that are there or not ---- */

static bool has_several(const report *r, const report_plan *p)
{
    return r->n > 1;
}

static bool has_steps(const report *r, const report_plan *p)
{
    return p->steps.n > 0;
}

static bool lacks_steps(const report *r, const report_plan *p)
{
    return !has_steps(r, p);
}

static bool has_work(const report *r, const report_plan *p)
{
    return p->steps.n > 0 && p->saved.steps.data[0].has_work;
}

static bool has_memory(const report *r, const report_plan *p)
{
    return p->memory.nvalues > 0;
}

static bool lacks_memory(const report *r, const report_plan *p)
{
    return !has_memory(r, p);
}

static bool has_plan(const report *r, const report_plan *p)
{
    return p->plan != NULL;
}

static bool has_gpu(const report *r, const report_plan *p)
{
    return p->plan && p->plan->program.nkernels > 0;
}

static bool has_fusion(const report *r, const report_plan *p)
{
    return r->has_fusion;
}

static bool lacks_fusion(const report *r, const report_plan *p)
{
    return !r->has_fusion;
}

static bool has_accuracy(const report *r, const report_plan *p)
{
    return r->accuracy.len > 0;
}

static bool lacks_accuracy(const report *r, const report_plan *p)
{
    return !has_accuracy(r, p);
}

static const struct part {
    const char *name;
    bool (*is_there)(const report *r, const report_plan *p); /* NULL: once for each plan */
} parts[] = {
    {"plans", NULL},
    {"several", has_several},
    {"steps", has_steps},
    {"no-steps", lacks_steps},
    {"work", has_work},
    {"memory", has_memory},
    {"no-memory", lacks_memory},
    {"plan", has_plan},
    {"gpu", has_gpu},
    {"fusion", has_fusion},
    {"no-fusion", lacks_fusion},
    {"accuracy", has_accuracy},
    {"no-accuracy", lacks_accuracy},
};

/* ---- filling ---- */

typedef struct filler {
    const report *r;
    zc_buf *out;
    zc_diag *diag;
} filler;

/* What stands between {{ and }}: the name of a place or, behind # and /, of a part. */
typedef struct brace {
    const char *begin, *end; /* of all of it */
    const char *name;
    size_t len;
} brace;

static bool next_brace(const char *at, const char *end, brace *out)
{
    const char *begin = memmem(at, (size_t)(end - at), "{{", 2);
    const char *close = begin ? memmem(begin, (size_t)(end - begin), "}}", 2) : NULL;
    if (!close) return false;
    *out = (brace){begin, close + 2, begin + 2, (size_t)(close - begin) - 2};
    return true;
}

static bool is_name(const brace *b, char mark, const char *name)
{
    size_t skip = mark != '\0';
    return b->len == strlen(name) + skip && (!skip || *b->name == mark) &&
           memcmp(b->name + skip, name, b->len - skip) == 0;
}

static zc_status wrong(const filler *f, const brace *b)
{
    return zc_fail(f->diag, ZC_ERR_INTERNAL, report_template[0].name,
                   "no such place in a report (got '%.*s')", (int)b->len, b->name);
}

static zc_status fill(const filler *f, const report_plan *p, const char *at, const char *end);

/* *close: the brace that ends the part. */
static zc_status fill_part(const filler *f, const report_plan *p, const brace *open,
                           const char *end, brace *close)
{
    size_t i = 0;
    while (i < ZC_COUNTOF(parts) && !is_name(open, '#', parts[i].name)) i++;
    if (i == ZC_COUNTOF(parts)) return wrong(f, open);
    do {
        if (!next_brace(close->end, end, close)) return wrong(f, open);
    } while (!is_name(close, '/', parts[i].name));
    if (parts[i].is_there)
        return parts[i].is_there(f->r, p) ? fill(f, p, open->end, close->begin) : ZC_OK;
    for (size_t k = 0; k < f->r->n; k++) ZC_TRY(fill(f, &f->r->plans[k], open->end, close->begin));
    return ZC_OK;
}

/* Parts nest as deep as the template, which is zc's own. */
static zc_status fill(const filler *f, const report_plan *p, const char *at, const char *end)
{
    for (brace b; next_brace(at, end, &b);) {
        zc_buf_append(f->out, at, (size_t)(b.begin - at));
        at = b.end;
        if (*b.name == '#') {
            brace close = b;
            ZC_TRY(fill_part(f, p, &b, end, &close));
            at = close.end;
            continue;
        }
        size_t i = 0;
        while (i < ZC_COUNTOF(places) && !is_name(&b, '\0', places[i].name)) i++;
        if (i == ZC_COUNTOF(places)) return wrong(f, &b);
        places[i].put(f->r, p, f->out);
    }
    zc_buf_append(f->out, at, (size_t)(end - at));
    return ZC_OK;
}

zc_status report_page(const report *r, zc_buf *out, zc_diag *diag)
{
    const char *text = report_template[0].text;
    ZC_TRY(fill(&(filler){r, out, diag}, NULL, text, text + strlen(text)));
    return out->failed ? zc_fail_nomem(diag, "report", out->len) : ZC_OK;
}
