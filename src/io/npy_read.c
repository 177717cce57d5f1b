#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/sniff.h"
#include "io/npy.h"
#include "io/npy_types.h"

#define HEADER_MAX 65536u
/* Magic, version and the longer form of the header's length. */
#define PREAMBLE_MAX 12u
#define DESCR_MAX    32

/* What a header says. */
typedef struct header {
    zc_tensor tensor; /* dtype and shape */
    bool swap;        /* elements are big-endian */
    bool fortran;     /* the first dimension varies fastest */
    size_t data_at;   /* offset of the elements */
    size_t bytes;     /* their size */
} header;

/* The header's text, a Python dictionary, being read. */
typedef struct cursor {
    const char *s;
    size_t at, end; /* offsets in the file */
    zc_diag *diag;
} cursor;

__attribute__((format(printf, 2, 3))) static zc_status fail_here(const cursor *c, const char *fmt,
                                                                 ...)
{
    char subject[32], reason[256];
    snprintf(subject, sizeof subject, "byte %zu", c->at);
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return zc_fail(c->diag, ZC_ERR_FORMAT, subject, "%s", reason);
}

/* The next character that is not a space; 0 at the end. It is not consumed. */
static char peek(cursor *c)
{
    while (c->at < c->end && (c->s[c->at] == ' ' || c->s[c->at] == '\t' || c->s[c->at] == '\n'))
        c->at++;
    return c->at < c->end ? c->s[c->at] : '\0';
}

static bool accept(cursor *c, char want)
{
    if (peek(c) != want) return false;
    c->at++;
    return true;
}

static zc_status expect(cursor *c, char want)
{
    if (accept(c, want)) return ZC_OK;
    return fail_here(c, "the header is not a dictionary that NumPy writes (need '%c')", want);
}

/* A quoted string without escapes into buf, cut never: one that does not fit is an error. */
static zc_status read_string(cursor *c, char *buf, size_t cap)
{
    const char quote = peek(c);
    if (quote != '\'' && quote != '"') return fail_here(c, "need a string in the header");
    size_t n = 0;
    for (c->at++; c->at < c->end && c->s[c->at] != quote; c->at++) {
        const char ch = c->s[c->at];
        if (ch < 0x20 || ch > 0x7E || ch == '\\')
            return fail_here(c, "a string in the header has an unusual character");
        if (n + 1 >= cap) return fail_here(c, "a string in the header is too long");
        buf[n++] = ch;
    }
    buf[n] = '\0';
    return expect(c, quote);
}

static bool accept_word(cursor *c, const char *word)
{
    peek(c);
    const size_t n = strlen(word);
    if (!zc_range_ok(c->at, n, c->end) || memcmp(c->s + c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

static zc_status read_bool(cursor *c, bool *out)
{
    *out = accept_word(c, "True");
    if (*out || accept_word(c, "False")) return ZC_OK;
    return fail_here(c, "fortran_order is neither True nor False");
}

static zc_status read_dim(cursor *c, int64_t *out)
{
    if (!isdigit((unsigned char)peek(c)))
        return fail_here(c, "a dimension is not a number (need 0 or more)");
    int64_t v = 0;
    for (; c->at < c->end && isdigit((unsigned char)c->s[c->at]); c->at++) {
        const int digit = c->s[c->at] - '0';
        if (v > (INT64_MAX - digit) / 10)
            return fail_here(c, "a dimension is too large (need at most 2^63-1)");
        v = v * 10 + digit;
    }
    if (c->at < c->end && c->s[c->at] == 'L') c->at++; /* Python 2 wrote long integers so */
    *out = v;
    return ZC_OK;
}

/* A tuple: (), (2,), (2, 3) or (2, 3,); (2) is a number in brackets. */
static zc_status read_shape(cursor *c, zc_tensor *t)
{
    bool comma = true;
    ZC_TRY(expect(c, '('));
    for (t->rank = 0; peek(c) != ')'; t->rank++) {
        if (!comma) return fail_here(c, "need ',' or ')' in the shape");
        if (t->rank == ZC_MAX_RANK)
            return fail_here(c, "too many dimensions (need at most %d)", ZC_MAX_RANK);
        ZC_TRY(read_dim(c, &t->dims[t->rank]));
        comma = accept(c, ',');
    }
    if (t->rank == 1 && !comma) return fail_here(c, "the shape is not a tuple (need ',')");
    return expect(c, ')');
}

/* Says why a type cannot be read. */
static zc_status fail_descr(const cursor *c, const char *descr)
{
    const char *kind = descr + (strchr("<>|=", descr[0]) && descr[0] ? 1 : 0);
    const char *why = "this type is not known";
    if (kind[0] == 'O') why = "Python objects cannot be read";
    if (kind[0] == 'U' || kind[0] == 'S' || kind[0] == 'a') why = "strings are not supported";
    if (kind[0] == 'M' || kind[0] == 'm') why = "dates and times are not supported";
    if (kind[0] == 'V' || strcmp(kind, "f1") == 0 || strcmp(kind, "bfloat16") == 0)
        why = "NumPy does not record what these bytes are (bfloat16, 8-bit and 4-bit types); save "
              "the tensor as a .pb file";
    if (strcmp(kind, "f16") == 0 || strcmp(kind, "c32") == 0) why = "long double is not supported";
    return zc_fail(c->diag, ZC_ERR_UNSUPPORTED, NULL, "element type '%s': %s", descr, why);
}

static zc_status read_descr(cursor *c, header *h)
{
    char descr[DESCR_MAX];
    if (peek(c) == '[')
        return zc_fail(c->diag, ZC_ERR_UNSUPPORTED, NULL,
                       "arrays of structures are not supported (need one element type)");
    ZC_TRY(read_string(c, descr, sizeof descr));
    h->tensor.dtype = zc_npy_dtype(descr, &h->swap);
    return h->tensor.dtype == ZC_NONE ? fail_descr(c, descr) : ZC_OK;
}

enum { DESCR, FORTRAN, SHAPE, KEYS };

static zc_status read_entry(cursor *c, header *h, bool seen[KEYS])
{
    static const char *const names[KEYS] = {"descr", "fortran_order", "shape"};
    char key[DESCR_MAX];
    int k = 0;
    ZC_TRY(read_string(c, key, sizeof key));
    while (k < KEYS && strcmp(key, names[k]) != 0) k++;
    if (k == KEYS) return fail_here(c, "unknown key '%s' in the header", key);
    if (seen[k]) return fail_here(c, "key '%s' twice in the header", key);
    seen[k] = true;
    ZC_TRY(expect(c, ':'));
    if (k == DESCR) return read_descr(c, h);
    if (k == FORTRAN) return read_bool(c, &h->fortran);
    return read_shape(c, &h->tensor);
}

static zc_status read_dictionary(cursor *c, header *h)
{
    bool seen[KEYS] = {0};
    ZC_TRY(expect(c, '{'));
    while (!accept(c, '}')) {
        ZC_TRY(read_entry(c, h, seen));
        if (peek(c) != '}') ZC_TRY(expect(c, ','));
    }
    if (!seen[DESCR] || !seen[FORTRAN] || !seen[SHAPE])
        return fail_here(c, "the header lacks a key (need descr, fortran_order and shape)");
    if (peek(c)) return fail_here(c, "text after the header's dictionary");
    if (c->s[c->end - 1] != '\n') return fail_here(c, "the header does not end in a newline");
    return ZC_OK;
}

/* Reads what stands before the dictionary and gives the dictionary's extent. */
static zc_status read_preamble(const uint8_t *head, size_t len, uint64_t size, cursor *c)
{
    if (len < 10 || memcmp(head, ZC_NPY_MAGIC, ZC_NPY_MAGIC_LEN) != 0) {
        const zc_file_kind *kind = zc_sniff(head, len);
        const bool npy =
            len >= ZC_NPY_MAGIC_LEN && memcmp(head, ZC_NPY_MAGIC, ZC_NPY_MAGIC_LEN) == 0;
        if (kind && !npy) return zc_fail_kind(c->diag, kind, "a .npy array");
        return zc_fail(c->diag, ZC_ERR_FORMAT, NULL, "%s",
                       npy ? "the .npy file is cut short" : "this is not a .npy array");
    }
    const unsigned major = head[6], minor = head[7];
    if (major < 1 || major > 3 || minor != 0)
        return zc_fail(c->diag, ZC_ERR_UNSUPPORTED, NULL,
                       "unknown .npy version (got %u.%u, need 1.0 to 3.0)", major, minor);
    c->at = major == 1 ? 10 : 12;
    if (len < c->at) return zc_fail(c->diag, ZC_ERR_FORMAT, NULL, "the .npy file is cut short");
    uint32_t n = head[8] | (uint32_t)head[9] << 8;
    if (major > 1) n |= (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
    if (n > HEADER_MAX)
        return zc_fail(c->diag, ZC_ERR_LIMIT, NULL,
                       "the header is too long (got %u bytes, need at most %u)", n, HEADER_MAX);
    if (n == 0 || !zc_range_ok(c->at, n, size))
        return zc_fail(c->diag, ZC_ERR_FORMAT, NULL,
                       "the .npy file is cut short (got %llu bytes, need %llu for the header)",
                       (unsigned long long)size, (unsigned long long)c->at + n);
    c->end = c->at + n;
    return ZC_OK;
}

/* head: the file's first bytes, all of the header if the file has that many; size: the file's. */
static zc_status read_header(const uint8_t *head, size_t len, uint64_t size, header *h,
                             zc_diag *diag)
{
    cursor c = {.s = (const char *)head, .diag = diag};
    *h = (header){0};
    ZC_TRY(read_preamble(head, len, size, &c));
    ZC_TRY(read_dictionary(&c, h));
    h->data_at = c.end;
    if (!zc_tensor_bytes(&h->tensor, &h->bytes))
        return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the shape's size in bytes overflows");
    if (h->bytes == size - h->data_at) return ZC_OK;
    char type[256];
    return zc_fail(diag, ZC_ERR_FORMAT, NULL,
                   "the data does not fill %s (got %llu bytes, need %zu)",
                   zc_tensor_type_text(&h->tensor, type, sizeof type),
                   (unsigned long long)(size - h->data_at), h->bytes);
}

static void swap_bytes(uint8_t *data, size_t bytes, size_t unit)
{
    for (size_t at = 0; at < bytes; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            const uint8_t b = data[at + i];
            data[at + i] = data[at + unit - 1 - i];
            data[at + unit - 1 - i] = b;
        }
}

/* Copies column-major elements to row-major order. */
static void transpose(const zc_tensor *t, size_t size, const uint8_t *from, uint8_t *to)
{
    int64_t index[ZC_MAX_RANK] = {0}, stride[ZC_MAX_RANK] = {0};
    int64_t step = 1, at = 0;
    for (int d = 0; d < t->rank; d++) {
        stride[d] = step;
        step *= t->dims[d];
    }
    for (int64_t i = 0; i < step; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)at * size, size);
        for (int d = t->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < t->dims[d]) break;
            at -= stride[d] * index[d];
            index[d] = 0;
        }
    }
}

/* Brings the elements in *data, which may be replaced, to zc's form. */
static zc_status finish(const header *h, uint8_t **data, zc_diag *diag)
{
    const size_t size = zc_dtype_bits(h->tensor.dtype) / 8;
    if (h->bytes == 0) return ZC_OK;
    if (h->swap)
        swap_bytes(*data, h->bytes,
                   zc_dtype_class(h->tensor.dtype) == ZC_CLASS_COMPLEX ? size / 2 : size);
    if (h->tensor.dtype == ZC_BOOL)
        for (size_t i = 0; i < h->bytes; i++) (*data)[i] = (*data)[i] != 0;
    if (!h->fortran || h->tensor.rank < 2) return ZC_OK;
    uint8_t *rows = zc_realloc(NULL, h->bytes, 1);
    if (!rows) return zc_fail_nomem(diag, "an array", h->bytes);
    transpose(&h->tensor, size, *data, rows);
    free(*data);
    *data = rows;
    return ZC_OK;
}

/* Where a file's bytes come from: memory, or fd when data is NULL. */
typedef struct source {
    const uint8_t *data;
    int fd;
    uint64_t size;
} source;

static zc_status fetch(const source *src, uint64_t off, size_t len, void *buf, zc_diag *diag)
{
    if (!src->data) return zc_file_pread(src->fd, buf, len, off, NULL, diag);
    if (len) memcpy(buf, src->data + off, len);
    return ZC_OK;
}

static zc_status read_source(const source *src, zc_tensor *out, zc_diag *diag)
{
    const uint64_t most = PREAMBLE_MAX + HEADER_MAX;
    const size_t len = (size_t)(src->size < most ? src->size : most);
    uint8_t *head = zc_realloc(NULL, len, 1);
    header h;
    zc_status status = head ? fetch(src, 0, len, head, diag) : zc_fail_nomem(diag, "a header", len);
    if (status == ZC_OK) status = read_header(head, len, src->size, &h, diag);
    free(head);
    if (status != ZC_OK) return status;
    uint8_t *data = h.bytes ? zc_realloc(NULL, h.bytes, 1) : NULL;
    if (h.bytes && !data) return zc_fail_nomem(diag, "an array", h.bytes);
    status = fetch(src, h.data_at, h.bytes, data, diag);
    if (status == ZC_OK) status = finish(&h, &data, diag);
    if (status != ZC_OK) {
        free(data);
        return status;
    }
    *out = h.tensor;
    out->data = data;
    return ZC_OK;
}

zc_status zc_npy_parse(const uint8_t *data, size_t len, zc_tensor *out, zc_diag *diag)
{
    const source src = {.data = data, .fd = -1, .size = len};
    if (len == 0)
        return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the file is empty (need a .npy array)");
    return read_source(&src, out, diag);
}

zc_status zc_npy_read(const char *path, zc_tensor *out, zc_diag *diag)
{
    source src = {.fd = -1};
    zc_diag_set_file(diag, NULL);
    ZC_TRY(zc_file_open(path, &src.fd, &src.size, diag));
    zc_diag_set_file(diag, path);
    const zc_status status =
        src.size ? read_source(&src, out, diag)
                 : zc_fail(diag, ZC_ERR_FORMAT, NULL, "the file is empty (need a .npy array)");
    close(src.fd);
    zc_diag_set_file(diag, NULL);
    return status;
}
