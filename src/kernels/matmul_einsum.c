/* Equations of two operands that are one batched matrix product. */
#include <string.h>

#include "kernels/matmul.h"
#include "op/einsum.h"

/* Where a label stands in a term, -1: nowhere, -2: twice. */
static int place(const zc_einsum_term *t, uint8_t label)
{
    int at = -1;
    for (int d = 0; d < t->n; d++)
        if (t->label[d] == label) at = at == -1 ? d : -2;
    return at;
}

/* Labels [from, to) of `order` as neighbours in the same order in `t`: the first's place, -1 for
 * no. */
static int run_of(const zc_einsum_term *t, const uint8_t *order, int count)
{
    int first = count ? place(t, order[0]) : 0;
    for (int i = 1; i < count; i++)
        if (place(t, order[i]) != first + i) return -1;
    return first;
}

/* The labels of each kind: batch, A's lines and B's lines in the result's order, summed in A's
 * order. */
typedef struct kinds {
    int count[4];
    uint8_t label[4][ZC_MAX_RANK];
} kinds;
enum { BATCH, LINES_A, LINES_B, DEPTH };

static void add_label(kinds *k, int kind, uint8_t label)
{
    k->label[kind][k->count[kind]++] = label;
}

/* No label may stand twice in a term, none in one operand alone unless the result has it. */
static bool sort_labels(const zc_einsum *e, const zc_einsum_term *a, const zc_einsum_term *b,
                        kinds *k)
{
    memset(k, 0, sizeof *k);
    for (int d = 0; d < e->out.n; d++) {
        uint8_t label = e->out.label[d];
        int in_a = place(a, label), in_b = place(b, label),
            kind = in_b == -1   ? LINES_A
                   : in_a == -1 ? LINES_B
                                : BATCH;
        if (in_a == -2 || in_b == -2) return false;
        add_label(k, kind, label);
    }
    for (int d = 0; d < a->n; d++) {
        if (place(&e->out, a->label[d]) != -1) continue;
        if (place(b, a->label[d]) < 0 || place(a, a->label[d]) < 0) return false;
        add_label(k, DEPTH, a->label[d]);
    }
    for (int d = 0; d < b->n; d++)
        if (place(&e->out, b->label[d]) == -1 && place(a, b->label[d]) < 0) return false;
    return k->count[BATCH] <= ZC_GEMM_BATCH;
}

/* An operand whose contiguous axis is its last line or its last step of the sum. */
static bool set_side(const zc_einsum_term *t, const kinds *k, int lines, zc_matmul_side *s,
                     bool *along_k)
{
    s->line_count = k->count[lines];
    s->depth_count = k->count[DEPTH];
    s->line_first = run_of(t, k->label[lines], s->line_count);
    s->depth_first = run_of(t, k->label[DEPTH], s->depth_count);
    for (int d = 0; d < k->count[BATCH]; d++) s->batch[d] = place(t, k->label[BATCH][d]);
    *along_k = s->depth_count && s->depth_first + s->depth_count == t->n;
    bool along_lines = s->line_count && s->line_first + s->line_count == t->n;
    return s->line_first >= 0 && s->depth_first >= 0 && (*along_k || along_lines);
}

/* The result's columns must be neighbours at its end. */
static bool set_result(const zc_einsum_term *t, const kinds *k, zc_matmul_side *s)
{
    int columns = run_of(t, k->label[LINES_B], k->count[LINES_B]);
    s->line_count = k->count[LINES_A];
    s->line_first = run_of(t, k->label[LINES_A], s->line_count);
    for (int d = 0; d < k->count[BATCH]; d++) s->batch[d] = place(t, k->label[BATCH][d]);
    bool at_end = k->count[LINES_B] == 0 || columns + k->count[LINES_B] == t->n;
    return s->line_first >= 0 && columns >= 0 && at_end;
}

static bool try_order(const zc_einsum *e, int first, zc_matmul_form *form)
{
    const zc_einsum_term *a = &e->in[first], *b = &e->in[1 - first];
    kinds k;
    if (!sort_labels(e, a, b, &k)) return false;
    form->a = first;
    form->b = 1 - first;
    form->axes_batch = k.count[BATCH];
    return set_side(a, &k, LINES_A, &form->side_a, &form->a_along_k) &&
           set_side(b, &k, LINES_B, &form->side_b, &form->b_along_k) &&
           set_result(&e->out, &k, &form->side_y);
}

bool zc_matmul_form_einsum(const char *equation, const int *ranks, zc_matmul_form *form)
{
    zc_einsum e;
    if (zc_einsum_parse(equation, 2, ranks, &e, NULL, NULL) != ZC_OK) return false;
    form->by_axes = true;
    return try_order(&e, 0, form) || try_order(&e, 1, form);
}
