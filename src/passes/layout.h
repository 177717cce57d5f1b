/* What the layout pass shares with what it turns: the graph on its way to channels last. */
#ifndef ZC_PASSES_LAYOUT_H
#define ZC_PASSES_LAYOUT_H

#include "ir/graph.h"
#include "kernels/conv_cost.h"

typedef struct zc_layout {
    zc_graph *g;
    bool half;      /* of 16 bits, too, whose convolutions take weights channels last */
    unsigned ranks; /* bit r: tensors of r axes are planes */
    bool bytes;     /* bytes, and sums of their products, too */
    zc_vid *last;   /* by value: its channels-last twin, 0 when there is none */
    uint32_t *uses;
    size_t values;      /* entries of the two above */
    bool weighs;        /* nothing is made yet: a value's twin is itself, or any other of its own */
    bool *stays;        /* by node: a convolution that is left channels first; NULL: none is */
    size_t nodes;       /* entries */
    ZC_VEC(zc_nid) out; /* the block's new node list */
    size_t changes;
    zc_diag *diag;
} zc_layout;

/* Microseconds of a node's kernels with images channels first and last; first INFINITY: it is
 * turned whatever that costs. */
typedef struct zc_layout_us {
    double first, last;
} zc_layout_us;

typedef enum zc_layout_kind {
    ZC_LAYOUT_FOLLOWS,  /* its planes are all channels last, or none */
    ZC_LAYOUT_IMAGE,    /* such a convolution that reads its image channels first */
    ZC_LAYOUT_SHUFFLES, /* what a Reshape and a Transpose in front of it are part of follows */
    ZC_LAYOUT_READS,    /* what it makes is no plane */
    ZC_LAYOUT_WIDENS,   /* a Cast, whose result is channels first */
    ZC_LAYOUT_LEAVES,   /* a transpose of the model to channels last, which goes */
    ZC_LAYOUT_ENTERS    /* ... from channels last */
} zc_layout_kind;

/* Operations that are turned: `is` says whether n is one, `make` turns it (false: no memory); us is
 * that of the convolutions. */
typedef struct zc_layout_op {
    bool (*is)(const zc_layout *l, const zc_node *n);
    bool (*make)(zc_layout *l, zc_nid n);
    zc_layout_kind kind;
    zc_layout_us (*us)(const zc_layout *l, const zc_node *n);
} zc_layout_op;

/* Each ends with an entry of NULL. */
extern const zc_layout_op zc_layout_convs[], zc_layout_phases[], zc_layout_moves[],
    zc_layout_others[];
/* The operation that n is, as things are; NULL: it is none. */
const zc_layout_op *zc_layout_op_of(const zc_layout *l, const zc_node *n);

/* A launch that moves the elements of a tensor as large as v, microseconds. */
double zc_layout_move_us(const zc_layout *l, zc_vid v);
/* Which convolutions are left channels first (layout_weigh.c), by what the layouts cost; told: text
 * for who asks why, or NULL. */
zc_status zc_layout_weigh(zc_layout *l, zc_buf *told);

/* Channels first to channels last, and back, of so many axes. */
enum { ZC_LAYOUT_AXES = 5 };
extern const int64_t zc_to_last[ZC_LAYOUT_AXES + 1][ZC_LAYOUT_AXES],
    zc_to_first[ZC_LAYOUT_AXES + 1][ZC_LAYOUT_AXES];

/* Is node n, a convolution, left channels first? */
static inline bool zc_layout_stays(const zc_layout *l, zc_nid n)
{
    return l->stays && n < l->nodes && l->stays[n];
}
/* What is certain of a convolution's image and result; false: a size is not. */
bool zc_layout_work(const zc_layout *l, const zc_node *n, zc_conv_work *w);
/* What ranks should be: on Hopper of all convolutions that are turned, elsewhere those over planes.
 */
unsigned zc_layout_ranks(zc_layout *l);
bool zc_layout_is_half(zc_dtype t);
/* Are planes of this type turned? */
bool zc_layout_takes(const zc_layout *l, zc_dtype t);
bool zc_layout_is_plane(const zc_layout *l, zc_vid v);
/* Is v a plane that was made channels-last, so that its own form costs a transpose? */
bool zc_layout_is_native(const zc_layout *l, zc_vid v);
/* Do its elements lie alike in either layout? */
bool zc_layout_is_line(const zc_layout *l, zc_vid v);
/* Has it one element, whatever its rank? One number a channel of planes of so many axes, [n, c, 1,
 * 1] or [c, 1, 1]? */
bool zc_layout_is_single(const zc_layout *l, zc_vid v);
bool zc_layout_is_channels(const zc_layout *l, zc_vid v, int rank);
/* Axes of a plane, of which v is one. */
int zc_layout_rank(const zc_layout *l, zc_vid v);
zc_type zc_layout_permuted(const zc_type *t, const int64_t *perm);
/* The type of its channels-last form. */
zc_type zc_layout_last_type(const zc_type *t);

/* What follows returns 0 or false when there is no memory. */

/* Side tables grow with the graph: after every new value. */
bool zc_layout_room(zc_layout *l);
/* n is next in the new list. */
bool zc_layout_keep(zc_layout *l, zc_nid n);
/* A new node with one result of the given type, at the end of the new list. */
zc_nid zc_layout_add(zc_layout *l, zc_op op, const char *name, int nin, const zc_vid *in,
                     const zc_type *type);
zc_vid zc_layout_result(const zc_layout *l, zc_nid n);
/* A node that gives v its axes in that order and elements of another type. */
zc_nid zc_layout_cast(zc_layout *l, zc_vid v, const int64_t *perm, zc_dtype to);
zc_vid zc_layout_to_last(zc_layout *l, zc_vid v);
zc_vid zc_layout_to_first(zc_layout *l, zc_vid v);
/* The channels-last form of v, made when it is not there. */
zc_vid zc_layout_last_of(zc_layout *l, zc_vid v);
/* `old` is now `made`, channels-last: other users get it transposed back. */
bool zc_layout_replace_value(zc_layout *l, zc_vid old, zc_vid made);
/* Node n's result now comes from the channels-last node m. */
bool zc_layout_replace(zc_layout *l, zc_nid n, zc_nid m);
/* Node n as a channels-last operation on these operands, with the attributes that both have. */
zc_nid zc_layout_turned(zc_layout *l, zc_nid n, zc_op op, int nin, const zc_vid *in);
/* The same in n's place. */
bool zc_layout_turn(zc_layout *l, zc_nid n, zc_op op, int nin, const zc_vid *in);
/* n's operation, in its place, on as many operands as it has; of its results planes are turned, and
 * others stay as they are. */
zc_nid zc_layout_turn_all(zc_layout *l, zc_nid n, const zc_vid *in);

#endif
