#include "op/op.h"

#include <string.h>

#include "base/mem.h"

/* ---- tables expanded from ops.def ---- */

#define OP(name, ...)                   static const zc_attr_field fields_##name[] = {
#define PW(name, ...)                   static const zc_attr_field fields_##name[] = {
#define FIELD(op, field, kind, i, f, s) {#field, kind, offsetof(zc_attrs_##op, field), i, f, s},
#define A_INT(op, field, def)           FIELD(op, field, ZC_ATTR_INT, def, 0, NULL)
#define A_FLOAT(op, field, def)         FIELD(op, field, ZC_ATTR_FLOAT, 0, def, NULL)
#define A_STR(op, field, def)           FIELD(op, field, ZC_ATTR_STR, 0, 0, def)
#define A_INTS(op, field)               FIELD(op, field, ZC_ATTR_INTS, 0, 0, NULL)
#define A_FLOATS(op, field)             FIELD(op, field, ZC_ATTR_FLOATS, 0, 0, NULL)
#define A_TENSOR(op, field)             FIELD(op, field, ZC_ATTR_TENSOR, 0, 0, NULL)
#define A_DTYPE(op, field, def)         FIELD(op, field, ZC_ATTR_DTYPE, def, 0, NULL)
#define END(name)                                                                                  \
    {                                                                                              \
        NULL, ZC_ATTR_INT, 0, 0, 0, NULL                                                           \
    }                                                                                              \
    }                                                                                              \
    ;
#include "op/ops.def"
#undef FIELD

static const zc_op_info infos[ZC_OP_COUNT] = {
    [ZC_OP_NONE] = {.name = "none"},
#define OP(nm, mini, maxi, mino, maxo, dt, infer, fl)                                              \
    [ZC_OP_##nm] = {.name = #nm,                                                                   \
                    .min_in = (mini),                                                              \
                    .max_in = (maxi),                                                              \
                    .min_out = (mino),                                                             \
                    .max_out = (maxo),                                                             \
                    .flags = (fl),                                                                 \
                    .attrs_size = sizeof(zc_attrs_##nm),                                           \
                    .fields = fields_##nm,                                                         \
                    .field_count = ZC_AT_##nm##_COUNT},
#define PW(nm, n, dt, fl, text)                                                                    \
    [ZC_OP_##nm] = {.name = #nm,                                                                   \
                    .min_in = (n),                                                                 \
                    .max_in = (n),                                                                 \
                    .min_out = 1,                                                                  \
                    .max_out = 1,                                                                  \
                    .flags = (fl) | ZC_OPF_POINTWISE | ZC_OPF_INPLACE,                             \
                    .expr = (text),                                                                \
                    .attrs_size = sizeof(zc_attrs_##nm),                                           \
                    .fields = fields_##nm,                                                         \
                    .field_count = ZC_AT_##nm##_COUNT},
#include "op/ops.def"
};

/* Several inputs, if not any number of them, have names. */
#define OP(nm, mini, maxi, ...)                                                                    \
    _Static_assert(ZC_IN_##nm##_COUNT == (maxi) || (maxi) <= 1 || (maxi) >= 32, #nm);
#include "op/ops.def"

const zc_op_info *zc_op_get(zc_op op)
{
    return &infos[(unsigned)op < ZC_OP_COUNT ? op : ZC_OP_NONE];
}

static const uint64_t host_inputs[ZC_OP_COUNT] = {
#define OP(name, ...)   [ZC_OP_##name] = 0
#define PW(name, ...)   OP(name, 0)
#define HOST(op, input) | UINT64_C(1) << ZC_IN_##op##_##input
#define END(name)       ,
#include "op/ops.def"
};

uint64_t zc_op_host_inputs(zc_op op)
{
    return host_inputs[(unsigned)op < ZC_OP_COUNT ? op : ZC_OP_NONE];
}

unsigned zc_op_role_of(zc_op op, int input)
{
    static const struct {
        zc_op op;
        int input;
        zc_op_role role;
    } roles[] = {
#define ROLE(op, input, role) {ZC_OP_##op, input, ZC_ROLE_##role},
#include "op/ops.def"
    };
    for (size_t i = 0; i < ZC_COUNTOF(roles); i++)
        if (roles[i].op == op && roles[i].input == input) return roles[i].role;
    return 0;
}

zc_op zc_op_find(const char *name, size_t len)
{
    for (int op = 1; op < ZC_OP_COUNT; op++) {
        if (strlen(infos[op].name) == len && memcmp(infos[op].name, name, len) == 0)
            return (zc_op)op;
    }
    return ZC_OP_NONE;
}

int zc_op_own_fields(const zc_op_info *info)
{
    int fused = info->flags & ZC_OPF_PROLOGUE ? 3 : info->flags & ZC_OPF_EPILOGUE ? 1 : 0;
    return info->field_count - fused - (info->flags & ZC_OPF_ALSO ? 1 : 0);
}

static const void *field(const zc_op_info *info, const void *attrs, int i)
{
    return (const char *)attrs + info->fields[i].offset;
}

const char *zc_op_prologue(const zc_op_info *info, const void *attrs, int *extras)
{
    int first = zc_op_own_fields(info);
    *extras = 0;
    if (!(info->flags & ZC_OPF_PROLOGUE)) return NULL;
    const char *text = *(const char *const *)field(info, attrs, first);
    int64_t n = *(const int64_t *)field(info, attrs, first + 1);
    if (text && n > 0) *extras = n < ZC_PROLOGUE_INPUTS ? (int)n : ZC_PROLOGUE_INPUTS;
    return text;
}

int zc_op_epilogue_first(const zc_op_info *info, const void *attrs)
{
    int extras;
    zc_op_prologue(info, attrs, &extras);
    return info->max_in + extras;
}

const char *zc_op_epilogue(const zc_op_info *info, const void *attrs)
{
    if (!(info->flags & ZC_OPF_EPILOGUE)) return NULL;
    return *(const char *const *)field(info, attrs, info->field_count - 1);
}

int zc_op_also_field(const zc_op_info *info)
{
    return info->flags & ZC_OPF_ALSO ? info->field_count - 2 : -1;
}

const char *zc_op_also(const zc_op_info *info, const void *attrs)
{
    const int at = zc_op_also_field(info);
    return at < 0 ? NULL : *(const char *const *)field(info, attrs, at);
}

int zc_op_max_in(const zc_op_info *info, const void *attrs)
{
    return zc_op_epilogue_first(info, attrs) +
           (zc_op_epilogue(info, attrs) ? ZC_EPILOGUE_INPUTS : 0);
}

/* ---- attributes ---- */

void zc_attrs_default(const zc_op_info *info, void *attrs)
{
    memset(attrs, 0, info->attrs_size);
    for (int i = 0; i < info->field_count; i++) {
        const zc_attr_field *f = &info->fields[i];
        void *at = zc_attr_at(info, attrs, i);
        switch (f->kind) {
        case ZC_ATTR_INT:
            *(int64_t *)at = f->def_int;
            break;
        case ZC_ATTR_FLOAT:
            *(float *)at = f->def_float;
            break;
        case ZC_ATTR_STR:
            *(const char **)at = f->def_str;
            break;
        case ZC_ATTR_DTYPE:
            *(zc_dtype *)at = (zc_dtype)f->def_int;
            break;
        case ZC_ATTR_INTS:
        case ZC_ATTR_FLOATS:
        case ZC_ATTR_TENSOR:
            break;
        }
    }
}

int zc_attr_find(const zc_op_info *info, const char *name, size_t len)
{
    for (int i = 0; i < info->field_count; i++) {
        if (strlen(info->fields[i].name) == len && memcmp(info->fields[i].name, name, len) == 0)
            return i;
    }
    return -1;
}

static size_t field_size(zc_attr_kind kind)
{
    static const size_t sizes[] = {
        [ZC_ATTR_INT] = sizeof(int64_t),      [ZC_ATTR_FLOAT] = sizeof(float),
        [ZC_ATTR_STR] = sizeof(const char *), [ZC_ATTR_INTS] = sizeof(zc_ints),
        [ZC_ATTR_FLOATS] = sizeof(zc_floats), [ZC_ATTR_TENSOR] = sizeof(const zc_tensor *),
        [ZC_ATTR_DTYPE] = sizeof(zc_dtype),
    };
    return sizes[kind];
}

/* The bytes that decide equality of a field: its own, or what it points to. */
static void field_bytes(const zc_attr_field *f, const void *at, const void **p, size_t *n)
{
    static const char none = 0;
    *p = at;
    *n = 0;
    switch (f->kind) {
    case ZC_ATTR_INT:
    case ZC_ATTR_FLOAT:
    case ZC_ATTR_DTYPE:
        *n = field_size(f->kind);
        break;
    case ZC_ATTR_STR:
        *p = *(const char *const *)at ? *(const char *const *)at : &none;
        *n = strlen(*p);
        break;
    case ZC_ATTR_INTS:
        *p = ((const zc_ints *)at)->v;
        *n = (size_t)((const zc_ints *)at)->n * sizeof(int64_t);
        break;
    case ZC_ATTR_FLOATS:
        *p = ((const zc_floats *)at)->v;
        *n = (size_t)((const zc_floats *)at)->n * sizeof(float);
        break;
    case ZC_ATTR_TENSOR: {
        const zc_tensor *t = *(const zc_tensor *const *)at;
        *p = t ? t->data : &none;
        if (t && !zc_tensor_bytes(t, n)) *n = 0;
        break;
    }
    }
}

static bool tensor_type_equal(const zc_tensor *a, const zc_tensor *b)
{
    if (!a || !b) return a == b;
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

void zc_attrs_take(const zc_op_info *info, void *attrs, const zc_op_info *from_info,
                   const void *from)
{
    for (int i = 0; i < from_info->field_count; i++) {
        const zc_attr_field *f = &from_info->fields[i];
        int to = zc_attr_find(info, f->name, strlen(f->name));
        if (!(*(const uint64_t *)from >> i & 1) || to < 0 || info->fields[to].kind != f->kind)
            continue;
        memcpy(zc_attr_at(info, attrs, to), field(from_info, from, i), field_size(f->kind));
        zc_attr_mark(attrs, to);
    }
}

bool zc_attrs_equal(const zc_op_info *info, const void *a, const void *b)
{
    if (*(const uint64_t *)a != *(const uint64_t *)b) return false;
    for (int i = 0; i < info->field_count; i++) {
        const zc_attr_field *f = &info->fields[i];
        const void *at_a = (const char *)a + f->offset, *at_b = (const char *)b + f->offset;
        if (f->kind == ZC_ATTR_TENSOR &&
            !tensor_type_equal(*(const zc_tensor *const *)at_a, *(const zc_tensor *const *)at_b))
            return false;
        const void *pa, *pb;
        size_t na, nb;
        field_bytes(f, at_a, &pa, &na);
        field_bytes(f, at_b, &pb, &nb);
        if (na != nb || (na && memcmp(pa, pb, na) != 0)) return false;
    }
    return true;
}

uint64_t zc_attrs_hash(const zc_op_info *info, const void *attrs)
{
    uint64_t h = 0xcbf29ce484222325u ^ *(const uint64_t *)attrs;
    for (int i = 0; i < info->field_count; i++) {
        const void *p;
        size_t n;
        field_bytes(&info->fields[i], (const char *)attrs + info->fields[i].offset, &p, &n);
        for (size_t j = 0; j < n; j++) h = (h ^ ((const unsigned char *)p)[j]) * 0x100000001b3u;
        h = (h ^ n) * 0x100000001b3u;
    }
    return h;
}
