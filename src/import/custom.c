/* Nodes of the caller's own operators. */
#include <stdlib.h>

#include "import/importer.h"

typedef struct collected {
    zc_buf keys;
    ZC_VEC(int64_t) ints;
    ZC_VEC(float) floats;
    bool failed;
} collected;

static void put_key(collected *c, char kind, size_t count, const char *name)
{
    zc_buf_printf(&c->keys, "%c %zu %s\n", kind, count, name);
}

static void put_ints(collected *c, char kind, const char *name, const int64_t *v, size_t n)
{
    put_key(c, kind, n, name);
    for (size_t i = 0; i < n; i++) c->failed |= !ZC_VEC_PUSH(&c->ints, v[i]);
}

static void put_floats(collected *c, char kind, const char *name, const float *v, size_t n)
{
    put_key(c, kind, n, name);
    for (size_t i = 0; i < n; i++) c->failed |= !ZC_VEC_PUSH(&c->floats, v[i]);
}

static zc_status put_text(zc_imp *im, zc_inode *n, collected *c, const char *name)
{
    const char *text = zc_imp_take_str(im, n, name, "");
    if (im->status != ZC_OK) return im->status;
    put_key(c, ZC_CUSTOM_TEXT, strlen(text), name);
    zc_buf_puts(&c->keys, text);
    zc_buf_puts(&c->keys, "\n");
    return ZC_OK;
}

static zc_status put_attribute(zc_imp *im, zc_inode *n, collected *c)
{
    const Onnx__AttributeProto *a = n->attrs[0];
    const char *name = n->attr_names[0];
    zc_ints ints;
    zc_floats floats;
    if (strchr(name, '\n'))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute '" ZC_NAME "': a name of two lines",
                           name);
    switch ((int)a->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        put_ints(c, ZC_CUSTOM_INT, name, &(int64_t){zc_imp_take_int(im, n, name, 0)}, 1);
        return im->status;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        put_floats(c, ZC_CUSTOM_FLOAT, name, &(float){(float)zc_imp_take_float(im, n, name, 0)}, 1);
        return im->status;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        return put_text(im, n, c, name);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        if (zc_imp_take_ints(im, n, name, &ints))
            put_ints(c, ZC_CUSTOM_INTS, name, ints.v, (size_t)ints.n);
        return im->status;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        if (zc_imp_take_floats(im, n, name, &floats))
            put_floats(c, ZC_CUSTOM_FLOATS, name, floats.v, (size_t)floats.n);
        return im->status;
    default:
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "attribute '" ZC_NAME
                           "': operators of the caller's have numbers, texts and lists of numbers",
                           name);
    }
}

static zc_status fill(zc_imp *im, const zc_inode *n, const collected *c, zc_attrs_Custom *out)
{
    zc_arena *arena = &im->g->arena;
    const char *domain = zc_arena_strdup(arena, n->domain);
    const char *name = zc_arena_strdup(arena, n->op_type);
    const char *keys = zc_arena_strndup(arena, c->keys.data, c->keys.len);
    const int64_t *ints = zc_arena_dup(arena, c->ints.data, c->ints.len, sizeof *ints);
    const float *floats = zc_arena_dup(arena, c->floats.data, c->floats.len, sizeof *floats);
    if (c->failed || c->keys.failed || !domain || !name || !keys || !ints || !floats)
        return zc_imp_nomem(im, "attributes");
    ZC_ATTR_SET(Custom, out, domain, domain);
    ZC_ATTR_SET(Custom, out, name, name);
    ZC_ATTR_SET(Custom, out, keys, keys);
    ZC_ATTR_SET(Custom, out, ints, ((zc_ints){(int)c->ints.len, ints}));
    ZC_ATTR_SET(Custom, out, floats, ((zc_floats){(int)c->floats.len, floats}));
    return ZC_OK;
}

zc_status zc_imp_custom(zc_imp *im, zc_inode *n)
{
    collected c = {.failed = false};
    zc_buf_puts(&c.keys, "");
    zc_status status = ZC_OK;
    while (status == ZC_OK && n->nattrs) status = put_attribute(im, n, &c);
    zc_nid id = status == ZC_OK ? zc_imp_node(im, n, ZC_OP_Custom, n->nin, n->in, n->nout) : 0;
    if (id) im->status = fill(im, n, &c, ZC_IMP_AT(im, Custom, id));
    zc_buf_fini(&c.keys);
    ZC_VEC_FINI(&c.ints);
    ZC_VEC_FINI(&c.floats);
    return im->status == ZC_OK ? zc_imp_finish(im, n, id) : im->status;
}
