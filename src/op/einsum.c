#include "op/einsum.h"

#include <string.h>

/* A term as written: letters with the place of its ellipsis. */
typedef struct text_term {
    int letters;
    int dots; /* index of the first label after the ellipsis; -1: none */
    uint8_t label[ZC_EINSUM_LABELS];
} text_term;

typedef struct parser {
    const char *text;
    size_t at;
    int ellipsis_rank; /* axes of every ellipsis; -1: none seen */
    const char *subject;
    zc_diag *diag;
} parser;

#define fail(p, ...) zc_fail((p)->diag, ZC_ERR_MODEL, (p)->subject, __VA_ARGS__)

static int letter_label(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return 26 + c - 'a';
    return -1;
}

static char peek(parser *p)
{
    while (p->text[p->at] == ' ') p->at++;
    return p->text[p->at];
}

static zc_status take_ellipsis(parser *p, text_term *t)
{
    if (strncmp(p->text + p->at, "...", 3) != 0)
        return fail(p, "bad ellipsis in equation (column %zu, need \"...\")", p->at + 1);
    if (t->dots >= 0)
        return fail(p, "two ellipses in one term of the equation (column %zu)", p->at + 1);
    t->dots = t->letters;
    p->at += 3;
    return ZC_OK;
}

/* Reads labels up to a ',' or '->' or the end. */
static zc_status take_term(parser *p, text_term *t)
{
    *t = (text_term){.dots = -1};
    for (;;) {
        char c = peek(p);
        int label = letter_label(c);
        if (c == '.') {
            ZC_TRY(take_ellipsis(p, t));
        } else if (label >= 0) {
            if (t->letters == ZC_MAX_RANK)
                return fail(p, "term of the equation too long (got more than %d labels)",
                            ZC_MAX_RANK);
            t->label[t->letters++] = (uint8_t)label;
            p->at++;
        } else if (c == '\0' || c == ',' || c == '-') {
            return ZC_OK;
        } else {
            return fail(p, "unexpected character in equation (column %zu)", p->at + 1);
        }
    }
}

/* Inserts the ellipsis's axes. */
static zc_status expand(parser *p, const text_term *t, int dots, zc_einsum_term *out)
{
    out->n = 0;
    if (t->letters + dots > ZC_MAX_RANK) {
        return fail(p, "term of the equation too long (got %d axes, need at most %d)",
                    t->letters + dots, ZC_MAX_RANK);
    }
    for (int i = 0; i <= t->letters; i++) {
        for (int d = 0; t->dots == i && d < dots; d++)
            out->label[out->n++] = (uint8_t)(ZC_EINSUM_LETTERS + d);
        if (i < t->letters) out->label[out->n++] = t->label[i];
    }
    return ZC_OK;
}

static zc_status take_operand(parser *p, int i, int rank, zc_einsum_term *out)
{
    text_term t;
    ZC_TRY(take_term(p, &t));
    int dots = t.dots >= 0 ? rank - t.letters : 0;
    if (dots < 0 || (t.dots < 0 && rank != t.letters)) {
        return fail(p, "term %d of the equation does not fit its operand (got %d labels, rank %d)",
                    i, t.letters, rank);
    }
    if (t.dots >= 0 && p->ellipsis_rank >= 0 && p->ellipsis_rank != dots) {
        return fail(p, "ellipses stand for different numbers of axes (got %d and %d)",
                    p->ellipsis_rank, dots);
    }
    if (t.dots >= 0) p->ellipsis_rank = dots;
    return expand(p, &t, dots, out);
}

static void count_labels(const zc_einsum *e, int count[ZC_EINSUM_LABELS])
{
    memset(count, 0, ZC_EINSUM_LABELS * sizeof *count);
    for (int i = 0; i < e->nin; i++)
        for (int j = 0; j < e->in[i].n; j++) count[e->in[i].label[j]]++;
}

/* Without "->": the ellipsis's axes, then the letters that occur once. */
static zc_status implicit_output(parser *p, zc_einsum *e)
{
    int count[ZC_EINSUM_LABELS];
    text_term t = {.dots = 0};
    count_labels(e, count);
    for (int l = 0; l < ZC_EINSUM_LETTERS; l++)
        if (count[l] == 1) t.label[t.letters++] = (uint8_t)l;
    return expand(p, &t, p->ellipsis_rank > 0 ? p->ellipsis_rank : 0, &e->out);
}

static zc_status explicit_output(parser *p, zc_einsum *e)
{
    int count[ZC_EINSUM_LABELS];
    bool seen[ZC_EINSUM_LABELS] = {false};
    text_term t;
    p->at += 2;
    ZC_TRY(take_term(p, &t));
    if (peek(p) != '\0') return fail(p, "unexpected character in equation (column %zu)", p->at + 1);
    count_labels(e, count);
    for (int i = 0; i < t.letters; i++) {
        char c = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[t.label[i]];
        if (!count[t.label[i]])
            return fail(p, "output label of the equation is in no operand (got '%c')", c);
        if (seen[t.label[i]])
            return fail(p, "output label of the equation occurs twice (got '%c')", c);
        seen[t.label[i]] = true;
    }
    int dots = p->ellipsis_rank > 0 ? p->ellipsis_rank : 0;
    if (dots > 0 && t.dots < 0)
        return fail(p, "output of the equation needs an ellipsis for %d axes", dots);
    return expand(p, &t, dots, &e->out);
}

zc_status zc_einsum_parse(const char *equation, int nin, const int *ranks, zc_einsum *out,
                          const char *subject, zc_diag *diag)
{
    parser p = {.text = equation, .ellipsis_rank = -1, .subject = subject, .diag = diag};
    if (!equation) return fail(&p, "equation is missing");
    if (nin > ZC_EINSUM_OPERANDS) {
        return fail(&p, "too many operands for an equation (got %d, need at most %d)", nin,
                    ZC_EINSUM_OPERANDS);
    }
    *out = (zc_einsum){.nin = nin};
    for (int i = 0; i < nin; i++) {
        if (i && peek(&p) != ',')
            return fail(&p, "equation has too few terms (got %d, need %d)", i, nin);
        if (i) p.at++;
        ZC_TRY(take_operand(&p, i, ranks[i], &out->in[i]));
    }
    char c = peek(&p);
    if (c == '\0') return implicit_output(&p, out);
    if (c == ',') return fail(&p, "equation has too many terms (need %d)", nin);
    if (c == '-' && equation[p.at + 1] == '>') return explicit_output(&p, out);
    return fail(&p, "unexpected character in equation (column %zu)", p.at + 1);
}
