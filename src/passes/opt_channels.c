/* Channels of bytes in pieces of 16 on Hopper, whose copy engine gathers pixels of convolutions
 * only where they are such (channels last, behind opt_layout).
 *
 * A convolution with another number of channels reads an image that is wider: it has those
 * channels somewhere, in their order, and others among them, which its weights multiply by nothing
 * (they equal their zero point). So what these others hold does not count. What makes the image is
 * widened from the convolutions on that it comes from: these make more channels, which repeat the
 * first one. Parts of channels are no step at all before a convolution, which finds them in the
 * whole. Who reads such a value otherwise gets it cut out. */
#include <stdlib.h>

#include "passes/channels.h"

/* Values that regions read have more uses than the graph's own nodes and results. false: no
 * memory. */
static bool find_inner(zc_channels *p)
{
    const zc_graph *g = p->g;
    const zc_block *b = &g->top;
    uint32_t *seen = zc_calloc(p->values, sizeof *seen);
    if (!seen) return false;
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(g, b->nodes.data[i]);
        for (int k = 0; k < n->nin; k++) seen[n->in[k]]++;
    }
    for (size_t i = 0; i < b->outputs.len; i++) seen[b->outputs.data[i]]++;
    for (size_t v = 1; v < p->values; v++) p->inner[v] = seen[v] != p->uses[v];
    free(seen);
    return true;
}

static bool pad(zc_channels *p, zc_buf *told)
{
    zc_block *b = &p->g->top;
    for (size_t i = 0; i < b->nodes.len; i++) zc_channels_find(p, b->nodes.data[i]);
    bool ok = zc_channels_weigh(p, told) && !p->failed;
    for (size_t i = 0; ok && i < b->nodes.len; i++) ok = zc_channels_widen(p, b->nodes.data[i]);
    for (size_t i = 0; ok && i < b->outputs.len; i++)
        ok = (b->outputs.data[i] = zc_channels_narrow(p, b->outputs.data[i])) != 0;
    b->nodes.len = 0;
    for (size_t i = 0; ok && i < p->out.len; i++) ok = ZC_VEC_PUSH(&b->nodes, p->out.data[i]);
    return ok;
}

static bool init(zc_channels *p)
{
    const size_t values = p->values, nodes = p->g->nodes.len;
    return (p->uses = zc_graph_uses(p->g)) && (p->inner = zc_calloc(values, sizeof *p->inner)) &&
           (p->forms = zc_calloc(values, sizeof *p->forms)) &&
           (p->wanted = zc_calloc(values, sizeof *p->wanted)) &&
           (p->enters = zc_calloc(values, sizeof *p->enters)) &&
           (p->wide = zc_calloc(values, sizeof *p->wide)) &&
           (p->own = zc_calloc(values, sizeof *p->own)) &&
           (p->narrow = zc_calloc(values, sizeof *p->narrow)) &&
           (p->kinds = zc_calloc(nodes, sizeof *p->kinds)) &&
           (p->shuffles = zc_calloc(nodes, sizeof *p->shuffles));
}

static void fini(zc_channels *p)
{
    free(p->uses);
    free(p->inner);
    free(p->forms);
    free(p->wanted);
    free(p->enters);
    free(p->wide);
    free(p->own);
    free(p->narrow);
    free(p->kinds);
    free(p->shuffles);
    ZC_VEC_FINI(&p->out);
}

zc_status zc_pass_opt_channels(zc_pass *pass)
{
    if (!zc_pass_has(pass, ZC_FAMILY_conv_quant_sm90)) return ZC_OK;
    ZC_TRY(zc_pass_opt_dce(pass)); /* what opt_layout left is no use of a value */
    zc_graph_compact(pass->g);
    zc_channels p = {.g = pass->g, .values = pass->g->values.len, .changes = &pass->changes};
    const bool ok = init(&p) && find_inner(&p) && pad(&p, pass->options->told);
    fini(&p);
    return ok ? ZC_OK : zc_fail_nomem(pass->diag, "channels", p.values);
}
