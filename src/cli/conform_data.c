/* Test data of models whose inputs are sequences or optionals: files that hold several tensors. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/conform.h"
#include "cli/inputs.h"

zc_wire_message cli_conform_kind(const Onnx__ValueInfoProto *info)
{
    const int kind = info->type ? (int)info->type->value_case : 0;
    if (kind == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) return ZC_WIRE_SEQUENCE;
    return kind == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE ? ZC_WIRE_OPTIONAL : ZC_WIRE_TENSOR;
}

bool cli_conform_composites(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_input; i++)
        if (cli_conform_kind(graph->input[i]) != ZC_WIRE_TENSOR) return true;
    return false;
}

static zc_status read_input(const Onnx__GraphProto *graph, const char *set, size_t i,
                            zc_tensor_list *out, zc_diag *diag)
{
    char path[8200];
    snprintf(path, sizeof path, "%s/input_%zu.pb", set, i);
    return zc_tensor_list_read(path, cli_conform_kind(graph->input[i]), out, diag);
}

/* "x/length", "x/0"; NULL: no memory. */
static const char *part_name(cli_conform_fixed *fixed, const char *input, const char *part)
{
    const size_t n = strlen(input) + strlen(part) + 2;
    char *name = zc_arena_alloc(&fixed->arena, n, 1);
    if (name) zc_snprintf(name, n, "%s/%s", input, part);
    return name;
}

static zc_status fix_dim(cli_conform_fixed *fixed, const char *input, const char *part,
                         size_t value, zc_diag *diag)
{
    zc_fixed_dim d = {.name = part_name(fixed, input, part), .value = (int64_t)value};
    return d.name && ZC_VEC_PUSH(&fixed->dims, d) ? ZC_OK : zc_fail_nomem(diag, "dimensions", 0);
}

static zc_status fix_shapes(cli_conform_fixed *fixed, const char *input,
                            const zc_tensor_list *value, zc_diag *diag)
{
    for (size_t i = 0; i < value->n; i++) {
        char part[24];
        zc_snprintf(part, sizeof part, "%zu", i);
        zc_fixed_shape s = {.input = part_name(fixed, input, part), .rank = value->v[i].rank};
        memcpy(s.dims, value->v[i].dims, sizeof s.dims);
        if (!s.input || !ZC_VEC_PUSH(&fixed->shapes, s)) return zc_fail_nomem(diag, "shapes", 0);
    }
    return ZC_OK;
}

static zc_status fix_sequence(cli_conform_fixed *fixed, const char *input,
                              const Onnx__TypeProto *type, const zc_tensor_list *value,
                              zc_diag *diag)
{
    const Onnx__TypeProto *elem = type->sequence_type ? type->sequence_type->elem_type : NULL;
    bool shaped = elem && elem->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
                  elem->tensor_type && elem->tensor_type->shape;
    ZC_TRY(fix_dim(fixed, input, "length", value->n, diag));
    return shaped ? ZC_OK : fix_shapes(fixed, input, value, diag);
}

static zc_status fix_input(const Onnx__ValueInfoProto *info, const zc_tensor_list *value,
                           cli_conform_fixed *fixed, zc_diag *diag)
{
    const Onnx__TypeProto *type = info->type;
    if (type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        ZC_TRY(fix_dim(fixed, info->name, "present", !value->absent, diag));
        type = type->optional_type ? type->optional_type->elem_type : NULL;
    }
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) return ZC_OK;
    return fix_sequence(fixed, info->name, type, value, diag);
}

zc_status cli_conform_fix(const Onnx__GraphProto *graph, const char *set, cli_conform_fixed *fixed,
                          zc_diag *diag)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        zc_tensor_list value;
        if (cli_conform_kind(graph->input[i]) == ZC_WIRE_TENSOR) continue;
        zc_status status = read_input(graph, set, i, &value, diag);
        if (status == ZC_OK) status = fix_input(graph->input[i], &value, fixed, diag);
        zc_tensor_list_free(&value);
        if (status != ZC_OK) return status;
    }
    return ZC_OK;
}

zc_status cli_conform_set(const Onnx__GraphProto *graph, const char *set, zc_session *s,
                          zc_diag *diag)
{
    size_t next = 0;
    for (size_t i = 0; i < graph->n_input; i++) {
        zc_tensor_list value;
        zc_status status = read_input(graph, set, i, &value, diag);
        for (size_t k = 0; k < value.n && status == ZC_OK; k++) {
            zc_view v = cli_view(&value.v[k]);
            status = zc_session_set_input(s, next++, &v, false, diag);
        }
        zc_tensor_list_free(&value);
        if (status != ZC_OK) return status;
    }
    return ZC_OK;
}
