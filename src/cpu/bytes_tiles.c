#include "cpu/bytes_tiles.h"

#include <pthread.h>
#include <string.h>

#include "cpu/bytes_finish.h"

#if SIMD_X86 && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANES = ZC_BYTE_COLUMNS, ROWS = ZC_TILE_ROWS, DEEP = ZC_TILE_DEPTH, QUAD = 4 };

/* Tiles, which GCC wants as literals: sums of row and column, factors left and right. */
#define SUM_00  0
#define SUM_01  1
#define SUM_10  2
#define SUM_11  3
#define LEFT_0  4
#define LEFT_1  5
#define RIGHT_0 6
#define RIGHT_1 7

#define TILES __attribute__((target("amx-tile,amx-int8")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

/* Tiles are state that the kernel saves for threads: a process has to ask for it. */
static void ask(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, HAS_TILES = 3 << 24 };
    unsigned a, b, c, d;
    if (!zc_has_vnni() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    if ((d & HAS_TILES) != HAS_TILES) return;
    usable = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool zc_has_tiles(void)
{
    pthread_once(&once, ask);
    return usable;
}

/* All tiles are whole. */
static const struct {
    uint8_t palette, start, none[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shape = {.palette = 1,
           .row_bytes = {DEEP, DEEP, DEEP, DEEP, DEEP, DEEP, DEEP, DEEP},
           .rows = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS}};

TILES void zc_tiles_begin(void)
{
    _tile_loadconfig(&shape);
}

TILES void zc_tiles_end(void)
{
    _tile_release();
}

/* What is left of the depth, filled up with zeros. */
typedef struct rest {
    uint8_t left[2][ROWS * DEEP];
    int8_t right[2][DEEP * LANES];
} rest;

static void load_rest(const uint8_t *a, int64_t lda, int two, const int8_t *b, int64_t panel,
                      int wide, int64_t n, rest *r)
{
    memset(r, 0, sizeof *r);
    for (int64_t i = 0; i < ROWS * (1 + two); i++)
        memcpy(&r->left[i / ROWS][i % ROWS * DEEP], a + i * lda, (size_t)n);
    for (int v = 0; v <= wide; v++) memcpy(r->right[v], b + v * panel, (size_t)n * LANES);
}

/* a[rows][DEEP] times b[DEEP][columns], added to the sums. two, wide: is there a second tile of
 * rows, of columns? */
#define STEP(two, wide, a, a_step, lda, b, b_step)                                                 \
    do {                                                                                           \
        _tile_loadd(LEFT_0, a, lda);                                                               \
        _tile_loadd(RIGHT_0, b, DEEP);                                                             \
        _tile_dpbusd(SUM_00, LEFT_0, RIGHT_0);                                                     \
        if (wide) {                                                                                \
            _tile_loadd(RIGHT_1, (b) + (b_step), DEEP);                                            \
            _tile_dpbusd(SUM_01, LEFT_0, RIGHT_1);                                                 \
        }                                                                                          \
        if (two) {                                                                                 \
            _tile_loadd(LEFT_1, (a) + (a_step), lda);                                              \
            _tile_dpbusd(SUM_10, LEFT_1, RIGHT_0);                                                 \
            if (wide) _tile_dpbusd(SUM_11, LEFT_1, RIGHT_1);                                       \
        }                                                                                          \
    } while (0)

/* GCC does not see that tiles read memory: what is written stands there from here on. */
ZC_INLINE void settle(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

ZC_INLINE TILES void sums_of(int two, int wide, const zc_byte_product *p, const uint8_t *a,
                             int64_t lda, const int8_t *b, int32_t *to)
{
    const int64_t depth = zc_bytes_row(p->k), panel = depth * LANES, whole = depth / DEEP * DEEP;
    settle(a);
    _tile_zero(SUM_00);
    _tile_zero(SUM_01);
    _tile_zero(SUM_10);
    _tile_zero(SUM_11);
    for (int64_t d = 0; d < whole; d += DEEP)
        STEP(two, wide, a + d, ROWS * lda, lda, b + d * LANES, panel);
    if (whole < depth) {
        rest r;
        load_rest(a + whole, lda, two, b + whole * LANES, panel, wide, depth - whole, &r);
        settle(&r);
        STEP(two, wide, r.left[0], ROWS * DEEP, DEEP, r.right[0], DEEP * LANES);
    }
    enum { STEP_BYTES = 2 * LANES * sizeof(int32_t) };
    _tile_stored(SUM_00, to, STEP_BYTES);
    if (wide) _tile_stored(SUM_01, to + LANES, STEP_BYTES);
    if (two) _tile_stored(SUM_10, to + 2 * ROWS * LANES, STEP_BYTES);
    if (two && wide) _tile_stored(SUM_11, to + 2 * ROWS * LANES + LANES, STEP_BYTES);
}
#undef STEP

static ZC_VNNI void finish(const zc_byte_product *p, const int32_t *sums, int64_t rows,
                           const uint8_t *a, int64_t lda, int64_t from, int64_t n, void *y,
                           int64_t ldy)
{
    const zc_byte_range range = zc_bytes_range(&p->s);
    const __m512 scale[] = {zc_bytes_scales16(&p->s, from, zc_bytes_mask(n)),
                            zc_bytes_scales16(&p->s, from + LANES, zc_bytes_mask(n - LANES))};
    for (int64_t r = 0; r < rows; r++, sums += 2 * LANES) {
        const __m512i part = _mm512_set1_epi32(zc_bytes_part(p, a + r * lda));
        for (int64_t c = 0; c < n; c += LANES) {
            const __m512i offset = _mm512_loadu_si512(p->offset + from + c);
            const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + c), offset);
            zc_bytes_finish16(&p->s, &range, scale[c / LANES], _mm512_sub_epi32(sum, part),
                              from + c, zc_bytes_mask(n - c),
                              (uint8_t *)y + (size_t)(r * ldy + c) * zc_bytes_size(p));
        }
    }
}

TILES void zc_tiles_multiply(const zc_byte_product *p, const int8_t *panels, int64_t rows,
                             const uint8_t *a, int64_t lda, int64_t from, int64_t n, void *y,
                             int64_t ldy)
{
    int32_t sums[2 * ROWS * 2 * LANES] __attribute__((aligned(64)));
    if (rows > ROWS && n > LANES)
        sums_of(1, 1, p, a, lda, panels, sums);
    else if (rows > ROWS)
        sums_of(1, 0, p, a, lda, panels, sums);
    else if (n > LANES)
        sums_of(0, 1, p, a, lda, panels, sums);
    else
        sums_of(0, 0, p, a, lda, panels, sums);
    finish(p, sums, rows, a, lda, from, n, y, ldy);
}
#else
bool zc_has_tiles(void)
{
    return false;
}
void zc_tiles_begin(void) {}
void zc_tiles_end(void) {}
void zc_tiles_multiply(const zc_byte_product *p, const int8_t *panels, int64_t rows,
                       const uint8_t *a, int64_t lda, int64_t from, int64_t n, void *y, int64_t ldy)
{
}
#endif
