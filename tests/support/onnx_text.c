#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "support/onnx_text.h"
#include "support/pb.h"

#define GRAPHS_MAX 16
#define WORDS_MAX  24

enum {
    NODE_OVERLOAD = 8,
    ATTR_REF = 21,
    ATTR_TYPE_FLOAT = 1,
    ATTR_TYPE_INT = 2,
    ATTR_TYPE_STRING = 3,
    ATTR_TYPE_TENSOR = 4,
    ATTR_TYPE_GRAPH = 5,
    ATTR_TYPE_FLOATS = 6,
    ATTR_TYPE_INTS = 7,
    ATTR_TYPE_STRINGS = 8,
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11,
    FUNCTION_OVERLOAD = 13
};

typedef struct text_graph {
    char name[32];
    zc_buf bytes;
} text_graph;

typedef struct writer {
    zc_buf top, graph, function, imports, functions;
    text_graph graphs[GRAPHS_MAX];
    int ngraphs;
    zc_buf *nodes; /* where nodes go */
    int node_field;
    long long ir;
} writer;

/* ---- lists ---- */

/* Cuts the next item off a list; NULL at its end. */
static char *next_item(char **list, char separator)
{
    char *item = *list;
    if (!item) return NULL;
    char *end = strchr(item, separator);
    if (end) *end = '\0';
    *list = end ? end + 1 : NULL;
    return item;
}

static bool is_list(const char *s)
{
    return s && strcmp(s, "-") != 0 && *s;
}

static void put_names(zc_buf *b, uint32_t field, char *list)
{
    if (!is_list(list)) return;
    for (char *s = next_item(&list, ','); s; s = next_item(&list, ','))
        pb_str(b, field, strcmp(s, "_") == 0 ? "" : s);
}

static void put_ints(zc_buf *b, uint32_t field, char *list)
{
    if (!is_list(list)) return;
    for (char *s = next_item(&list, ','); s; s = next_item(&list, ','))
        pb_int(b, field, strtoll(s, NULL, 0));
}

static void put_floats(zc_buf *b, uint32_t field, char *list)
{
    if (!is_list(list)) return;
    for (char *s = next_item(&list, ','); s; s = next_item(&list, ','))
        pb_f32(b, field, (float)zc_strtod(s, NULL));
}

/* ---- tensors and values ---- */

static void put_tensor(zc_buf *b, uint32_t field, const char *name, const char *type, char *dims,
                       char *values)
{
    zc_buf t = {0};
    const int elem = atoi(type);
    put_ints(&t, TENSOR_DIMS, dims);
    pb_int(&t, TENSOR_DATA_TYPE, elem);
    if (elem == 7)
        put_ints(&t, TENSOR_INT64_DATA, values);
    else if ((elem >= 2 && elem <= 6) || elem == 9 || elem == 21 || elem == 22)
        put_ints(&t, TENSOR_INT32_DATA, values);
    else if (elem == 8)
        put_names(&t, TENSOR_STRING_DATA, values);
    else
        put_floats(&t, TENSOR_FLOAT_DATA, values);
    if (name) pb_str(&t, TENSOR_NAME, name);
    pb_msg(b, field, &t);
}

static void put_sparse(zc_buf *b, char **w)
{
    zc_buf s = {0};
    char count[16];
    int n = 1;
    for (const char *c = w[3]; *c; c++) n += *c == ',';
    snprintf(count, sizeof count, "%d", n);
    char count2[16];
    memcpy(count2, count, sizeof count);
    put_tensor(&s, SPARSE_VALUES, w[1], "1", count, w[4]);
    put_tensor(&s, SPARSE_INDICES, NULL, "7", count2, w[3]);
    put_ints(&s, SPARSE_DIMS, w[2]);
    pb_msg(b, GRAPH_SPARSE_INITIALIZER, &s);
}

static void put_shape(zc_buf *b, char *dims)
{
    zc_buf shape = {0};
    zc_buf_puts(&shape, "");
    if (is_list(dims)) {
        for (char *s = next_item(&dims, ','); s; s = next_item(&dims, ',')) {
            zc_buf dim = {0};
            zc_buf_puts(&dim, "");
            if (*s == '-' || (*s >= '0' && *s <= '9'))
                pb_int(&dim, DIM_VALUE, strtoll(s, NULL, 0));
            else if (*s != '?')
                pb_str(&dim, DIM_PARAM, s);
            pb_msg(&shape, SHAPE_DIM, &dim);
        }
    }
    pb_msg(b, TYPE_TENSOR_SHAPE, &shape);
}

/* The type becomes that of a sequence or an optional of it. */
static void wrap_type(zc_buf *type, uint32_t field)
{
    zc_buf inner = *type, outer = {0};
    *type = (zc_buf){0};
    pb_msg(&outer, 1, &inner);
    pb_msg(type, field, &outer);
}

static void put_value(zc_buf *b, uint32_t field, char **w)
{
    zc_buf tensor = {0}, type = {0}, value = {0};
    const bool optional = w[2][0] == 'o', sequence = w[2][optional] == 's';
    const int elem = atoi(w[2] + optional + sequence);
    pb_str(&value, VALUE_NAME, strcmp(w[1], "_") == 0 ? "" : w[1]);
    if (elem) pb_int(&tensor, TYPE_TENSOR_ELEM, elem);
    if (w[3] && strcmp(w[3], "*") != 0) put_shape(&tensor, w[3]);
    pb_msg(&type, TYPE_TENSOR, &tensor);
    if (sequence) wrap_type(&type, TYPE_SEQUENCE);
    if (optional) wrap_type(&type, TYPE_OPTIONAL);
    if (elem || w[3]) pb_msg(&value, VALUE_TYPE, &type);
    zc_buf_fini(&type);
    pb_msg(b, field, &value);
}

/* ---- attributes ---- */

static const zc_buf *find_graph(const writer *w, const char *name)
{
    for (int i = 0; i < w->ngraphs; i++)
        if (strcmp(w->graphs[i].name, name) == 0) return &w->graphs[i].bytes;
    fail_msg("no graph %s", name);
    return NULL;
}

static int put_attr_value(const writer *w, zc_buf *a, const char *kind, char *value)
{
    if (strcmp(kind, "i") == 0) return pb_int(a, ATTR_I, strtoll(value, NULL, 0)), ATTR_TYPE_INT;
    if (strcmp(kind, "f") == 0)
        return pb_f32(a, ATTR_F, (float)zc_strtod(value, NULL)), ATTR_TYPE_FLOAT;
    if (strcmp(kind, "s") == 0) return pb_str(a, ATTR_S, value), ATTR_TYPE_STRING;
    if (strcmp(kind, "is") == 0) return put_ints(a, ATTR_INTS, value), ATTR_TYPE_INTS;
    if (strcmp(kind, "fs") == 0) return put_floats(a, ATTR_FLOATS, value), ATTR_TYPE_FLOATS;
    if (strcmp(kind, "ss") == 0) return put_names(a, ATTR_STRINGS, value), ATTR_TYPE_STRINGS;
    if (strcmp(kind, "n") == 0) return atoi(value);
    if (strcmp(kind, "t") == 0) {
        char *type = next_item(&value, '/'), *dims = next_item(&value, '/');
        put_tensor(a, ATTR_T, NULL, type, dims, value);
        return ATTR_TYPE_TENSOR;
    }
    if (strcmp(kind, "g") == 0) {
        const zc_buf *g = find_graph(w, value);
        pb_bytes(a, ATTR_G, g->data ? g->data : "", g->len);
        return ATTR_TYPE_GRAPH;
    }
    if (strcmp(kind, "r") == 0) {
        char *name = next_item(&value, '/');
        pb_str(a, ATTR_REF, name);
        return atoi(value);
    }
    fail_msg("attribute kind %s", kind);
    return 0;
}

static void put_attr(const writer *w, zc_buf *b, uint32_t field, char *word)
{
    char *name = next_item(&word, ':'), *kind = next_item(&word, '=');
    zc_buf a = {0};
    pb_str(&a, ATTR_NAME, name);
    int type = put_attr_value(w, &a, kind, word ? word : (char[]){""});
    if (type) pb_int(&a, ATTR_TYPE, type);
    pb_msg(b, field, &a);
}

/* ---- lines ---- */

static void put_node(writer *w, char **words, int n)
{
    zc_buf node = {0};
    put_names(&node, NODE_INPUT, words[2]);
    put_names(&node, NODE_OUTPUT, words[3]);
    pb_str(&node, NODE_OP_TYPE, words[1]);
    for (int i = 4; i < n; i++) {
        const char *colon = strchr(words[i], ':'), *equals = strchr(words[i], '=');
        if (strncmp(words[i], "name=", 5) == 0)
            pb_str(&node, NODE_NAME, words[i] + 5);
        else if (strncmp(words[i], "domain=", 7) == 0)
            pb_str(&node, NODE_DOMAIN, words[i] + 7);
        else if (strncmp(words[i], "overload=", 9) == 0)
            pb_str(&node, NODE_OVERLOAD, words[i] + 9);
        else if (colon && (!equals || colon < equals))
            put_attr(w, &node, NODE_ATTRIBUTE, words[i]);
        else
            fail_msg("%s in a node", words[i]);
    }
    pb_msg(w->nodes, (uint32_t)w->node_field, &node);
}

static void put_opset(writer *w, char **words, int n)
{
    zc_buf import = {0};
    if (n > 2) pb_str(&import, OPSET_DOMAIN, words[1]);
    pb_int(&import, OPSET_VERSION, strtoll(words[n - 1], NULL, 0));
    bool inside = w->nodes == &w->function;
    pb_msg(inside ? &w->function : &w->imports, inside ? FUNCTION_OPSET : MODEL_OPSET_IMPORT,
           &import);
}

static void begin_graph(writer *w, char **words)
{
    if (w->ngraphs == GRAPHS_MAX) fail_msg("too many graphs");
    text_graph *g = &w->graphs[w->ngraphs++];
    snprintf(g->name, sizeof g->name, "%s", words[1]);
    pb_str(&g->bytes, GRAPH_NAME, words[1]);
    w->nodes = &g->bytes;
    w->node_field = GRAPH_NODE;
}

static void begin_function(writer *w, char **words, int n)
{
    pb_str(&w->function, FUNCTION_DOMAIN, words[1]);
    pb_str(&w->function, FUNCTION_NAME, words[2]);
    put_names(&w->function, FUNCTION_INPUT, words[3]);
    put_names(&w->function, FUNCTION_OUTPUT, words[4]);
    if (n > 5) put_names(&w->function, FUNCTION_ATTRIBUTE, words[5]);
    if (n > 6) pb_str(&w->function, FUNCTION_OVERLOAD, words[6]);
    w->nodes = &w->function;
    w->node_field = FUNCTION_NODE;
}

static void end_block(writer *w)
{
    if (w->nodes == &w->function) pb_msg(&w->functions, MODEL_FUNCTIONS, &w->function);
    w->nodes = &w->graph;
    w->node_field = GRAPH_NODE;
}

static void put_line(writer *w, char **words, int n)
{
    static const struct {
        const char *word;
        uint32_t field;
    } values[] = {{"in", GRAPH_INPUT}, {"out", GRAPH_OUTPUT}, {"info", GRAPH_VALUE_INFO}};
    const char *what = words[0];
    for (size_t i = 0; i < ZC_COUNTOF(values); i++) {
        if (strcmp(what, values[i].word) != 0) continue;
        put_value(w->nodes, values[i].field, words);
        return;
    }
    if (strcmp(what, "ir") == 0)
        w->ir = strtoll(words[1], NULL, 0);
    else if (strcmp(what, "opset") == 0)
        put_opset(w, words, n);
    else if (strcmp(what, "init") == 0)
        put_tensor(w->nodes, GRAPH_INITIALIZER, strcmp(words[1], "_") ? words[1] : NULL, words[2],
                   words[3], words[4]);
    else if (strcmp(what, "sparse") == 0)
        put_sparse(w->nodes, words);
    else if (strcmp(what, "node") == 0)
        put_node(w, words, n);
    else if (strcmp(what, "graph") == 0)
        begin_graph(w, words);
    else if (strcmp(what, "func") == 0)
        begin_function(w, words, n);
    else if (strcmp(what, "default") == 0)
        put_attr(w, &w->function, FUNCTION_DEFAULT, words[1]);
    else if (strcmp(what, "end") == 0)
        end_block(w);
    else
        fail_msg("line '%s'", what);
}

static void read_line(writer *w, char *line)
{
    char *words[WORDS_MAX + 1] = {0};
    int n = 0;
    for (char *s = strtok(line, " "); s; s = strtok(NULL, " ")) {
        if (n == WORDS_MAX) fail_msg("too many words");
        words[n++] = s;
    }
    if (n) put_line(w, words, n);
}

static void append(zc_buf *out, zc_buf *part)
{
    zc_buf_append(out, part->data ? part->data : "", part->len);
    zc_buf_fini(part);
}

void onnx_text(const char *text, zc_buf *out)
{
    writer w = {.ir = 8, .node_field = GRAPH_NODE};
    w.nodes = &w.graph;
    zc_buf_puts(&w.graph, "");
    char *copy = strdup(text), *rest = copy;
    assert_non_null(copy);
    for (char *line = next_item(&rest, '\n'); line; line = next_item(&rest, '\n'))
        read_line(&w, line);
    free(copy);
    pb_int(out, MODEL_IR_VERSION, w.ir);
    append(out, &w.imports);
    append(out, &w.functions);
    pb_msg(out, MODEL_GRAPH, &w.graph);
    for (int i = 0; i < w.ngraphs; i++) zc_buf_fini(&w.graphs[i].bytes);
    assert_false(out->failed);
}
