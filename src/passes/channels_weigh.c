/* Which channels are padded. Convolutions want it of what they read, and what makes that wants it
 * of what it is made of: values that have their forms together, or none of them, are a region.
 * What a region's convolutions gain by tensor cores stands against the launches that it has more:
 * for what is read in another form, too, and for what is made elsewhere.
 *
 * Where a size is not certain, and so may be any, the region is padded. */
#include <math.h>
#include <stdlib.h>

#include "passes/channels.h"
#include "passes/cost.h"

/* By value: its region's first value leads to no other, and has what the region gains, in
 * microseconds. */
typedef struct place {
    zc_vid parent;
    double gain;
} place;

typedef struct weighing {
    zc_channels *p;
    place *at;
} weighing;

static place *root_of(weighing *w, zc_vid v)
{
    while (w->at[v].parent != v) v = w->at[v].parent = w->at[w->at[v].parent].parent;
    return &w->at[v];
}

static void join(weighing *w, zc_vid a, zc_vid b)
{
    place *from = root_of(w, a), *to = root_of(w, b);
    if (from == to) return;
    to->gain += from->gain;
    from->parent = to->parent;
}

bool zc_channels_is_wide(const zc_channels *p, const zc_node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && p->wanted[n->out[i]] && !p->enters[n->out[i]]) return true;
    return false;
}

/* ---- what they gain ---- */

/* By convolution n of all channels, where its image's are in pieces. What family conv is held to
 * take leaves out its results, so tensor cores are never held to be slower. */
static double gain_of(const zc_graph *g, const zc_node *n)
{
    enum { IMAGE = 4 }; /* channels that have a kernel of their own */
    zc_conv_work work;
    const bool certain = zc_cost_conv(g, n, zc_channels_roles_of(n->op).w, &work);
    if (work.in % ZC_CHANNELS_PIECE == 0 || work.in <= IMAGE) return 0;
    const double tensor = zc_conv_quant_us(&work);
    if (tensor == INFINITY) return 0;
    return certain ? fmax(zc_conv_bytes_us(&work) - tensor, 0) : INFINITY;
}

/* By convolution n of each channel by itself, which has more of them. */
static double loss_of(const zc_channels *p, const zc_node *n)
{
    zc_conv_work work;
    if (!zc_cost_conv(p->g, n, zc_channels_roles_of(n->op).w, &work)) return 0;
    const double us = zc_conv_bytes_us(&work);
    work.groups = p->forms[n->out[0]].width;
    return zc_conv_bytes_us(&work) - us;
}

/* ---- regions ---- */

/* Node n, which has a form, or is a convolution, reads v. */
static void want(weighing *w, zc_vid v)
{
    zc_channels *p = w->p;
    const int64_t count = zc_channels_of(p->g, v);
    if (!p->forms[v].width) {
        p->forms[v] = zc_channels_padded(p, count, zc_channels_pieces(count));
        p->enters[v] = true;
    }
    p->wanted[v] = p->forms[v].width > 0;
}

/* Does it, where it has a form, read all of v's channels in v's form? */
static bool may_want(const zc_channels *p, zc_nid id, zc_vid v)
{
    const zc_node *n = zc_node_at(p->g, id);
    if (p->forms[v].width) return !p->forms[v].part || zc_channels_has_own(p, v);
    return p->kinds[id] == ZC_CHANNELS_FOLLOWS && !zc_val(p->g, v)->data &&
           zc_channels_of(p->g, v) > 1 &&
           zc_channels_of(p->g, v) == zc_channels_of(p->g, n->out[0]);
}

static void ask_conv(weighing *w, const zc_node *n)
{
    const zc_channels *p = w->p;
    const zc_vid x = n->in[0];
    const double gain = gain_of(p->g, n);
    const bool may_enter = zc_channels_of(p->g, x) > 0 && !zc_val(p->g, x)->data;
    if (!p->forms[x].width && (gain <= 0 || !may_enter)) return;
    want(w, x);
    root_of(w, x)->gain += gain;
}

/* Backwards. */
static void ask(weighing *w, zc_nid id)
{
    const zc_channels *p = w->p;
    const zc_node *n = zc_node_at(p->g, id);
    const zc_channels_kind k = p->kinds[id];
    if (k == ZC_CHANNELS_CONV) ask_conv(w, n);
    if (k == ZC_CHANNELS_OTHER || k == ZC_CHANNELS_CONV || k == ZC_CHANNELS_WITHIN ||
        !zc_channels_is_wide(p, n))
        return;
    if (k == ZC_CHANNELS_EACH) root_of(w, n->out[0])->gain -= loss_of(p, n);
    const zc_vid shuffled = k == ZC_CHANNELS_SHUFFLE ? zc_channels_shuffled(p, id) : 0;
    const zc_vid *in = shuffled ? &shuffled : n->in;
    const int nin = k == ZC_CHANNELS_PARTS || k == ZC_CHANNELS_SHUFFLE ? 1 : n->nin;
    for (int i = 0; i < nin; i++) {
        if (!in[i] || (k != ZC_CHANNELS_PARTS && !may_want(p, id, in[i]))) continue;
        want(w, in[i]);
        for (int o = 0; o < n->nout; o++)
            if (n->out[o]) join(w, in[i], n->out[o]);
    }
}

/* v is read as it was, or is made wide of what it was: a launch, once. */
static void cost(weighing *w, bool *counted, zc_vid v)
{
    if (counted[v]) return;
    counted[v] = true;
    root_of(w, v)->gain -= zc_cost_move_us(&zc_val(w->p->g, v)->type);
}

static bool reads_wide(const zc_channels *p, zc_nid id)
{
    const zc_node *n = zc_node_at(p->g, id);
    const zc_channels_kind k = p->kinds[id];
    return k == ZC_CHANNELS_CONV || k == ZC_CHANNELS_PARTS || zc_channels_is_wide(p, n) ||
           (k == ZC_CHANNELS_WITHIN && zc_channels_is_wide(p, zc_node_at(p->g, p->shuffles[id])));
}

static void count_costs(weighing *w, bool *counted)
{
    const zc_channels *p = w->p;
    const zc_block *b = &p->g->top;
    for (zc_vid v = 1; v < p->values; v++)
        if (p->wanted[v] && p->enters[v]) cost(w, counted, v);
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(p->g, b->nodes.data[i]);
        if (reads_wide(p, b->nodes.data[i])) continue;
        for (int k = 0; k < n->nin; k++)
            if (p->wanted[n->in[k]]) cost(w, counted, n->in[k]);
    }
    for (size_t i = 0; i < b->outputs.len; i++)
        if (p->wanted[b->outputs.data[i]]) cost(w, counted, b->outputs.data[i]);
}

static void decide(weighing *w, zc_buf *told)
{
    zc_channels *p = w->p;
    const zc_block *b = &p->g->top;
    for (size_t i = 0; told && i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(p->g, b->nodes.data[i]);
        if (p->kinds[b->nodes.data[i]] != ZC_CHANNELS_CONV || !p->wanted[n->in[0]]) continue;
        const double gain = root_of(w, n->in[0])->gain;
        if (gain < 0)
            zc_buf_printf(told,
                          "%s '%s' is not on tensor cores: with %lld channels in pieces of %d its "
                          "region would take %.1f us more\n",
                          zc_op_get(n->op)->name, n->name,
                          (long long)zc_channels_of(p->g, n->in[0]), ZC_CHANNELS_PIECE, -gain);
    }
    for (zc_vid v = 1; v < p->values; v++) p->wanted[v] = p->wanted[v] && root_of(w, v)->gain >= 0;
}

bool zc_channels_weigh(zc_channels *p, zc_buf *told)
{
    const zc_block *b = &p->g->top;
    weighing w = {.p = p, .at = zc_calloc(p->values, sizeof *w.at)};
    bool *counted = zc_calloc(p->values, sizeof *counted);
    const bool room = w.at && counted;
    for (zc_vid v = 0; room && v < p->values; v++) w.at[v].parent = v;
    for (size_t i = b->nodes.len; room && i-- > 0;) ask(&w, b->nodes.data[i]);
    if (room) {
        count_costs(&w, counted);
        decide(&w, told);
    }
    free(w.at);
    free(counted);
    return room;
}
