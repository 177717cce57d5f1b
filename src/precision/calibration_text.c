#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "precision/calibration.h"

static const char header[] = "# zc calibration 1";

/* The part of a bin's number without the sign, and the first that no finite number has. */
enum { BIN_MAGNITUDE = ZC_CALIBRATION_BINS / 2 - 1, BIN_INFINITE = 255 << 4 };
enum { FILE_MOST = 256 << 20, TENSORS_MOST = 1 << 20, FIELDS_MOST = 8 };

/* ---- writing ---- */

static void put_activation(const zc_calibration *c, const zc_activation *a, zc_buf *out)
{
    float greatest = fmaxf(a->greatest, -a->least);
    zc_buf_printf(out, "activation\t%s\t%llu\t%llu\t%.9g\t%.9g\t%.9g\t", a->name,
                  (unsigned long long)a->count, (unsigned long long)a->infinite, (double)a->least,
                  (double)a->greatest,
                  (double)zc_histogram_threshold(&a->bins, greatest, c->method));
    for (size_t i = 0; i < a->bins.len; i++)
        zc_buf_printf(out, "%s%u:%llu", i ? " " : "", a->bins.data[i].bin,
                      (unsigned long long)a->bins.data[i].count);
    zc_buf_puts(out, "\n");
}

static void put_weight(const zc_channels *w, zc_buf *out)
{
    zc_buf_printf(out, "weight\t%s\t%d\t", w->name, w->axis);
    for (size_t i = 0; i < w->count; i++)
        zc_buf_printf(out, "%s%.9g", i ? " " : "", (double)w->thresholds[i]);
    zc_buf_puts(out, "\n");
}

zc_status zc_calibration_print(const zc_calibration *c, zc_buf *out, zc_diag *diag)
{
    zc_buf_printf(out, "%s\nmodel\t%s\t%llu\t%s\n", header, c->model, (unsigned long long)c->runs,
                  zc_calibration_method_name(c->method));
    for (size_t i = 0; i < c->activations.len; i++) put_activation(c, &c->activations.data[i], out);
    for (size_t i = 0; i < c->weights.len; i++) put_weight(&c->weights.data[i], out);
    return out->failed ? zc_fail_nomem(diag, "calibration", out->len) : ZC_OK;
}

zc_status zc_calibration_write(const zc_calibration *c, const char *path, zc_diag *diag)
{
    zc_buf text = {0};
    zc_status status = zc_calibration_print(c, &text, diag);
    if (status == ZC_OK) status = zc_file_write(path, text.data, text.len, diag);
    zc_buf_fini(&text);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    zc_calibration *c;
    size_t line;
    zc_diag *diag;
} reader;

static zc_status bad(const reader *r, const char *name, const char *what)
{
    return zc_fail(r->diag, ZC_ERR_FORMAT, name, "line %zu: %s", r->line, what);
}

static bool whole(const char **text, uint64_t most, uint64_t *out)
{
    const char *c = *text;
    *out = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (digit > most || *out > (most - digit) / 10) return false;
        *out = *out * 10 + digit;
    }
    bool any = c > *text;
    *text = c;
    return any;
}

static bool whole_field(const char *text, uint64_t most, uint64_t *out)
{
    return whole(&text, most, out) && !*text;
}

static bool real_field(const char *text, float *out)
{
    char *end;
    double v = zc_strtod(text, &end);
    *out = (float)v;
    return end > text && !*end && isfinite(*out);
}

static zc_status read_bins(const reader *r, char *text, zc_activation *a)
{
    uint64_t sum = 0, bin, n;
    for (const char *at = text; *at; at += *at == ' ') {
        if (!whole(&at, ZC_CALIBRATION_BINS - 1, &bin) || *at++ != ':' ||
            !whole(&at, a->count - sum, &n) || !n || (*at && *at != ' '))
            return bad(r, a->name, "the histogram is damaged");
        if ((bin & BIN_MAGNITUDE) >= BIN_INFINITE)
            return bad(r, a->name, "the histogram has elements that are not finite");
        if (a->bins.len && a->bins.data[a->bins.len - 1].bin >= bin)
            return bad(r, a->name, "the histogram is not in order");
        const zc_histogram_bin one = {(uint32_t)bin, n};
        if (!ZC_VEC_PUSH(&a->bins, one)) return zc_fail_nomem(r->diag, a->name, 0);
        sum += n;
    }
    return sum == a->count ? ZC_OK : bad(r, a->name, "the histogram has not all elements");
}

static zc_status read_activation(const reader *r, char *const field[FIELDS_MOST])
{
    float threshold; /* follows from the histogram */
    zc_calibration *c = r->c;
    zc_activation a = {.name = zc_arena_strdup(&c->arena, field[1])};
    if (!a.name) return zc_fail_nomem(r->diag, "calibration", 0);
    if (!whole_field(field[2], INT64_MAX, &a.count) ||
        !whole_field(field[3], INT64_MAX, &a.infinite))
        return bad(r, a.name, "the count is no number");
    if (!real_field(field[4], &a.least) || !real_field(field[5], &a.greatest) ||
        a.least > a.greatest)
        return bad(r, a.name, "the range is none");
    if (!real_field(field[6], &threshold) || threshold < 0)
        return bad(r, a.name, "the threshold is none");
    if (c->activations.len && strcmp(c->activations.data[c->activations.len - 1].name, a.name) >= 0)
        return bad(r, a.name, "the names are not in order");
    zc_status status = read_bins(r, field[7], &a);
    if (status == ZC_OK && !ZC_VEC_PUSH(&c->activations, a))
        status = zc_fail_nomem(r->diag, a.name, 0);
    if (status != ZC_OK) ZC_VEC_FINI(&a.bins);
    return status;
}

static zc_status read_weight(const reader *r, char *const field[FIELDS_MOST])
{
    zc_calibration *c = r->c;
    uint64_t axis;
    size_t most = 1;
    zc_channels w = {.name = zc_arena_strdup(&c->arena, field[1])};
    for (const char *at = field[3]; *at; at++) most += *at == ' ';
    float *thresholds = zc_arena_alloc(&c->arena, most, sizeof *thresholds);
    if (!w.name || !thresholds) return zc_fail_nomem(r->diag, "calibration", most);
    if (!whole_field(field[2], ZC_MAX_RANK - 1, &axis)) return bad(r, w.name, "the axis is none");
    char *rest = field[3], *word;
    while (*field[3] && (word = strsep(&rest, " ")))
        if (!real_field(word, &thresholds[w.count++]) || thresholds[w.count - 1] < 0)
            return bad(r, w.name, "a threshold is none");
    if (c->weights.len && strcmp(c->weights.data[c->weights.len - 1].name, w.name) >= 0)
        return bad(r, w.name, "the names are not in order");
    w.axis = (int)axis;
    w.thresholds = thresholds;
    return ZC_VEC_PUSH(&c->weights, w) ? ZC_OK : zc_fail_nomem(r->diag, w.name, 0);
}

static zc_status read_model(const reader *r, char *const field[FIELDS_MOST])
{
    zc_calibration *c = r->c;
    size_t n = strlen(field[1]);
    if (n != 64 || strspn(field[1], "0123456789abcdef") != n)
        return bad(r, NULL, "the model's SHA-256 is none");
    memcpy(c->model, field[1], n + 1);
    c->method = zc_calibration_method_find(field[3]);
    if (c->method == ZC_CALIBRATION_METHOD_COUNT) return bad(r, field[3], "is no method");
    return whole_field(field[2], UINT32_MAX, &c->runs) ? ZC_OK
                                                       : bad(r, NULL, "the runs are no number");
}

static zc_status read_line(const reader *r, char *line)
{
    char *field[FIELDS_MOST], *rest = line;
    size_t n = 0;
    while (n < FIELDS_MOST && rest) field[n++] = strsep(&rest, "\t");
    if (rest) return bad(r, NULL, "too many fields");
    bool is_model = strcmp(field[0], "model") == 0 && n == 4;
    if (is_model != (r->line == 2)) return bad(r, NULL, "need one line of the model, the second");
    if (is_model) return read_model(r, field);
    if (r->c->activations.len + r->c->weights.len == TENSORS_MOST)
        return bad(r, NULL, "too many tensors");
    if (strcmp(field[0], "activation") == 0 && n == 8 && !r->c->weights.len)
        return read_activation(r, field);
    if (strcmp(field[0], "weight") == 0 && n == 4) return read_weight(r, field);
    return bad(r, NULL, "is no line of a calibration");
}

static zc_status read_lines(reader *r, char *text)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        if (!text) return *line ? bad(r, NULL, "the last line has no end") : ZC_OK;
        if (++r->line > 1)
            ZC_TRY(read_line(r, line));
        else if (strcmp(line, header) != 0)
            return bad(r, NULL, "is no calibration (need \"# zc calibration 1\")");
    }
    return ZC_OK;
}

zc_status zc_calibration_parse(zc_calibration *c, const char *text, size_t len, const char *name,
                               zc_diag *diag)
{
    reader r = {.c = c, .diag = diag};
    zc_diag_set_file(diag, name);
    char *own = memchr(text, '\0', len) ? NULL : zc_arena_strndup(&c->arena, text, len);
    zc_status status = own                       ? read_lines(&r, own)
                       : memchr(text, '\0', len) ? bad(&r, NULL, "is no text")
                                                 : zc_fail_nomem(diag, "calibration", len);
    if (status == ZC_OK && !*c->model) status = bad(&r, NULL, "the model's line is missing");
    zc_diag_set_file(diag, NULL);
    return status;
}

zc_status zc_calibration_read(zc_calibration *c, const char *path, zc_diag *diag)
{
    uint8_t *text;
    size_t len;
    ZC_TRY(zc_file_read(path, FILE_MOST, &text, &len, diag));
    zc_status status = zc_calibration_parse(c, (const char *)text, len, path, diag);
    free(text);
    return status;
}
