/* Products of bytes on the processor's tiles (AMX), where it has them and the system lets us. */
#ifndef ZC_CPU_BYTES_TILES_H
#define ZC_CPU_BYTES_TILES_H

#include "cpu/bytes.h"

enum { ZC_TILE_ROWS = 16, ZC_TILE_DEPTH = 64 };

/* Asks the system at the first call in a process. */
bool zc_has_tiles(void);
/* Between these two, a thread's tiles are set for zc_tiles_multiply. */
void zc_tiles_begin(void);
void zc_tiles_end(void);
/* One or two times ZC_TILE_ROWS rows by n <= 2 * ZC_BYTE_COLUMNS columns from `from` on, whose
 * panels begin at `panels`. */
void zc_tiles_multiply(const zc_byte_product *p, const int8_t *panels, int64_t rows,
                       const uint8_t *a, int64_t lda, int64_t from, int64_t n, void *y,
                       int64_t ldy);

#endif
