#include "cpu/copy.h"

#include <string.h>

/* A contiguous run of up to this many bytes is treated as one large element. */
#define RUN_MAX 4096
/* Bytes copied at once when an element is repeated; at least RUN_MAX. */
#define FILL_MAX 8192
/* Bytes that are worth a thread. */
#define GRAIN_BYTES 65536
/* A transposed tile is this many bytes long both ways: a cache line. */
#define TILE_BYTES 64
/* A block of work is this many tiles long both ways. */
#define BLOCK_TILES 8
/* Where one of the axes is shorter than a tile, a block is this many elements long. */
#define BLOCK_NARROW 256

/* A copy with byte strides and without needless axes; rank >= 1. */
typedef struct job {
    int rank;
    int64_t dims[ZC_COPY_MAX_RANK], to[ZC_COPY_MAX_RANK], from[ZC_COPY_MAX_RANK];
    size_t size; /* of an element */
    char *dst;
    const char *src;
    int across;  /* transposing: the axis that is contiguous in the source */
    bool narrow; /* one of the two axes is shorter than a tile */
    int64_t block, blocks_across, blocks_along;
} job;

/* ---- simplification ---- */

static void add_axis(job *j, int64_t dim, int64_t to, int64_t from)
{
    int last = j->rank - 1;
    if (dim == 1) return;
    if (last >= 0 && j->to[last] == to * dim && j->from[last] == from * dim) {
        j->dims[last] *= dim;
        j->to[last] = to;
        j->from[last] = from;
        return;
    }
    j->dims[j->rank] = dim;
    j->to[j->rank] = to;
    j->from[j->rank] = from;
    j->rank++;
}

/* Makes a short contiguous run one element. */
static void absorb_run(job *j)
{
    int last = j->rank - 1;
    int64_t size = (int64_t)j->size;
    if (last < 1 || j->to[last] != size || j->from[last] != size) return;
    if (j->dims[last] > RUN_MAX / size) return;
    j->size *= (size_t)j->dims[last];
    j->rank--;
}

static bool is_word(size_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

/* The axis that is contiguous in the source when the last one is so only in the destination, or
 * -1: no transposition. */
static int transposed_axis(const job *j)
{
    int last = j->rank - 1;
    int64_t size = (int64_t)j->size;
    if (!is_word(j->size) || j->to[last] != size || j->from[last] == size) return -1;
    for (int i = 0; i < last; i++)
        if (j->from[i] == size) return i;
    return -1;
}

/* ---- rows ---- */

#define COPY_WORDS(bytes)                                                                          \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, bytes)
/* Repeats one element: ever longer copies of what is there. */
static void fill_row(size_t size, int64_t n, char *to, const char *from)
{
    size_t bytes = (size_t)n * size, done = size;
    if (size == 1) {
        memset(to, *from, bytes);
        return;
    }
    memcpy(to, from, size);
    while (done < bytes) {
        size_t more = done < FILL_MAX ? done : FILL_MAX / size * size;
        if (more > bytes - done) more = bytes - done;
        memcpy(to + done, to, more);
        done += more;
    }
}

static void copy_row(size_t size, int64_t n, char *to, int64_t to_step, const char *from,
                     int64_t from_step)
{
    if (to_step == (int64_t)size && from_step == (int64_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    if (to_step == (int64_t)size && from_step == 0) {
        fill_row(size, n, to, from);
        return;
    }
    switch (size) {
    case 1:
        COPY_WORDS(1);
        break;
    case 2:
        COPY_WORDS(2);
        break;
    case 4:
        COPY_WORDS(4);
        break;
    case 8:
        COPY_WORDS(8);
        break;
    case 16:
        COPY_WORDS(16);
        break;
    default:
        COPY_WORDS(size);
        break;
    }
}

/* Elements [begin, end) in row-major order. */
static void copy_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int last = j->rank - 1;
    int64_t idx[ZC_COPY_MAX_RANK], to = 0, from = 0;
    for (int64_t d = last, rest = begin; d >= 0; d--) {
        idx[d] = rest % j->dims[d];
        rest /= j->dims[d];
        to += idx[d] * j->to[d];
        from += idx[d] * j->from[d];
    }
    while (begin < end) {
        int64_t n = j->dims[last] - idx[last];
        if (n > end - begin) n = end - begin;
        copy_row(j->size, n, j->dst + to, j->to[last], j->src + from, j->from[last]);
        begin += n;
        idx[last] += n - 1;
        to += (n - 1) * j->to[last];
        from += (n - 1) * j->from[last];
        for (int d = last; d >= 0; d--) {
            bool carry = ++idx[d] == j->dims[d];
            to += carry ? j->to[d] * (1 - j->dims[d]) : j->to[d];
            from += carry ? j->from[d] * (1 - j->dims[d]) : j->from[d];
            if (!carry) break;
            idx[d] = 0;
        }
    }
}

/* ---- transposed tiles ---- */

/* Reads and writes whole cache lines, by way of a buffer: with strides that are powers of two,
 * lines that must stay until they are needed again would displace each other. */
#define TILE_WORDS(type)                                                                           \
    type line[TILE_BYTES / sizeof(type)][TILE_BYTES / sizeof(type)];                               \
    for (int64_t c = 0; c < cols; c++)                                                             \
        memcpy(line[c], from + c * from_step, (size_t)rows * sizeof(type));                        \
    for (int64_t r = 0; r < rows; r++) {                                                           \
        type out[TILE_BYTES / sizeof(type)];                                                       \
        for (int64_t c = 0; c < cols; c++) out[c] = line[c][r];                                    \
        memcpy(to + r * to_step, out, (size_t)cols * sizeof(type));                                \
    }

typedef struct word16 {
    uint64_t half[2];
} word16;

#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLE
#endif
#endif

#ifdef HAVE_SHUFFLE
typedef uint32_t vec4 __attribute__((vector_size(16)));

/* Four vectors to their transpose. */
static void transpose_4(vec4 v[4])
{
    vec4 a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    vec4 b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    vec4 c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    vec4 d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

/* A full tile of 4-byte elements. */
static void full_tile_4(char *to, int64_t to_step, const char *from, int64_t from_step)
{
    vec4 line[16][4];
    for (int c = 0; c < 16; c += 4) {
        for (int r = 0; r < 4; r++) {
            vec4 v[4];
            for (int i = 0; i < 4; i++)
                memcpy(&v[i], from + (c + i) * from_step + r * 16, sizeof v[i]);
            transpose_4(v);
            for (int i = 0; i < 4; i++) line[r * 4 + i][c / 4] = v[i];
        }
    }
    for (int r = 0; r < 16; r++) memcpy(to + r * to_step, line[r], sizeof line[r]);
}
#endif

/* rows of the destination, to_step apart; columns of the source, from_step apart. */
static void copy_tile(size_t size, int64_t rows, int64_t cols, char *to, int64_t to_step,
                      const char *from, int64_t from_step)
{
#ifdef HAVE_SHUFFLE
    if (size == 4 && rows == 16 && cols == 16) {
        full_tile_4(to, to_step, from, from_step);
        return;
    }
#endif
    if (size == 1) {
        TILE_WORDS(uint8_t)
    } else if (size == 2) {
        TILE_WORDS(uint16_t)
    } else if (size == 4) {
        TILE_WORDS(uint32_t)
    } else if (size == 8) {
        TILE_WORDS(uint64_t)
    } else {
        TILE_WORDS(word16)
    }
}

#define NARROW_WORDS(bytes)                                                                        \
    for (int64_t r = 0; r < rows; r++)                                                             \
        for (int64_t c = 0; c < cols; c++)                                                         \
    memcpy(to + r * to_step + c * (bytes), from + r * (bytes) + c * from_step, bytes)

#define INTERLEAVE(count)                                                                          \
    for (int64_t r = 0; r < rows; r++)                                                             \
        for (int64_t c = 0; c < (count); c++)                                                      \
    memcpy(to + (r * (count) + c) * 4, from + r * 4 + c * from_step, 4)

/* Two to four rows of 4-byte elements in turn, the way for compilers to vectors; false: others. */
static bool interleave(size_t size, int64_t rows, int64_t cols, char *restrict to, int64_t to_step,
                       const char *restrict from, int64_t from_step)
{
    if (size != 4 || to_step != 4 * cols) return false;
    switch (cols) {
    case 2:
        INTERLEAVE(2);
        return true;
    case 3:
        INTERLEAVE(3);
        return true;
    case 4:
        INTERLEAVE(4);
        return true;
    default:
        return false;
    }
}

static void copy_narrow(size_t size, int64_t rows, int64_t cols, char *to, int64_t to_step,
                        const char *from, int64_t from_step)
{
    if (interleave(size, rows, cols, to, to_step, from, from_step)) return;
    switch (size) {
    case 1:
        NARROW_WORDS(1);
        break;
    case 2:
        NARROW_WORDS(2);
        break;
    case 4:
        NARROW_WORDS(4);
        break;
    case 8:
        NARROW_WORDS(8);
        break;
    default:
        NARROW_WORDS(16);
        break;
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A block of tiles. */
static void copy_block(size_t size, int64_t rows, int64_t cols, char *to, int64_t to_step,
                       const char *from, int64_t from_step)
{
    int64_t tile = TILE_BYTES / (int64_t)size, bytes = (int64_t)size;
    for (int64_t r = 0; r < rows; r += tile) {
        for (int64_t c = 0; c < cols; c += tile)
            copy_tile(size, least(tile, rows - r), least(tile, cols - c),
                      to + r * to_step + c * bytes, to_step, from + r * bytes + c * from_step,
                      from_step);
    }
}

static void copy_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int last = j->rank - 1, across = j->across;
    int64_t block = j->block;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t c = unit % j->blocks_along * block, rest = unit / j->blocks_along;
        int64_t r = rest % j->blocks_across * block;
        rest /= j->blocks_across;
        int64_t to = r * j->to[across] + c * j->to[last];
        int64_t from = r * j->from[across] + c * j->from[last];
        for (int d = last - 1; d >= 0; d--) {
            if (d == across) continue;
            to += rest % j->dims[d] * j->to[d];
            from += rest % j->dims[d] * j->from[d];
            rest /= j->dims[d];
        }
        int64_t rows = least(block, j->dims[across] - r), cols = least(block, j->dims[last] - c);
        (j->narrow ? copy_narrow : copy_block)(j->size, rows, cols, j->dst + to, j->to[across],
                                               j->src + from, j->from[last]);
    }
}

/* ---- entry ---- */

static int64_t blocks(int64_t n, int64_t block)
{
    return n / block + (n % block != 0);
}

/* n is the number of elements. */
static void run_blocks(zc_kctx *k, job *j, int64_t n)
{
    int64_t rows = j->dims[j->across], cols = j->dims[j->rank - 1], size = (int64_t)j->size;
    j->narrow = least(rows, cols) < TILE_BYTES / size;
    j->block = j->narrow ? BLOCK_NARROW : BLOCK_TILES * TILE_BYTES / size;
    j->blocks_across = blocks(rows, j->block);
    j->blocks_along = blocks(cols, j->block);
    int64_t bytes = least(rows, j->block) * least(cols, j->block) * size;
    zc_parallel(k, n / rows / cols * j->blocks_across * j->blocks_along, GRAIN_BYTES / bytes + 1,
                copy_blocks, j);
}

void zc_copy_run(zc_kctx *k, const zc_copy *c, size_t size, void *to, const void *from)
{
    job j = {.size = size, .dst = to, .src = from};
    int64_t s = (int64_t)size, n = 1;
    for (int i = 0; i < c->rank; i++)
        if (c->dims[i] == 0) return;
    for (int i = 0; i < c->rank; i++) add_axis(&j, c->dims[i], c->to[i] * s, c->from[i] * s);
    absorb_run(&j);
    if (j.rank == 0) {
        j.dims[0] = 1;
        j.to[0] = j.from[0] = (int64_t)j.size;
        j.rank = 1;
    }
    for (int i = 0; i < j.rank; i++) n *= j.dims[i];
    j.across = transposed_axis(&j);
    if (j.across < 0) {
        zc_parallel(k, n, GRAIN_BYTES / (int64_t)j.size + 1, copy_rows, &j);
        return;
    }
    run_blocks(k, &j, n);
}

void zc_copy_flat(zc_kctx *k, int64_t n, size_t size, void *to, const void *from)
{
    zc_copy c = {0};
    if (to == from) return;
    zc_copy_axis(&c, n, 1, 1);
    zc_copy_run(k, &c, size, to, from);
}

void zc_copy_fill(zc_kctx *k, int64_t n, size_t size, void *to, const void *value)
{
    zc_copy c = {0};
    zc_copy_axis(&c, n, 1, 0);
    zc_copy_run(k, &c, size, to, value);
}

#define GATHER_WORDS(bytes)                                                                        \
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * (bytes), src + map[i] * (bytes), bytes)

void zc_copy_gather(size_t size, int64_t n, void *to, const void *from, const int64_t *map)
{
    char *dst = to;
    const char *src = from;
    switch (size) {
    case 1:
        GATHER_WORDS(1);
        break;
    case 2:
        GATHER_WORDS(2);
        break;
    case 4:
        GATHER_WORDS(4);
        break;
    case 8:
        GATHER_WORDS(8);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * (int64_t)size, src + map[i] * (int64_t)size, size);
    }
}

/* ---- checks ---- */

zc_status zc_check_shape(zc_kctx *k, const zc_tensor *t, int rank, const int64_t *dims,
                         const char *what)
{
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++) same = t->dims[i] == dims[i];
    if (same) return ZC_OK;
    zc_tensor wanted = {.dtype = t->dtype, .rank = rank < ZC_MAX_RANK ? rank : ZC_MAX_RANK};
    memcpy(wanted.dims, dims, (size_t)wanted.rank * sizeof *dims);
    char a[256], b[256];
    return zc_kernel_fail(k, "wrong shape of %s (got %s, need %s)", what,
                          zc_tensor_type_text(t, a, sizeof a),
                          zc_tensor_type_text(&wanted, b, sizeof b));
}

zc_status zc_check_length(zc_kctx *k, int64_t got, int64_t need, const char *what)
{
    if (got == need) return ZC_OK;
    return zc_kernel_fail(k, "wrong %s (got %lld, need %lld)", what, (long long)got,
                          (long long)need);
}
