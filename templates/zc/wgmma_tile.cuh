/* What zc_wgmma is told of a factor: a tile in shared memory, in 128-byte lines swizzled as tensor maps do, aligned to 1024.
 *
 * Along the summed axis: the first line plus 32 bytes a step; lines follow each other at 128 bytes. Across it: 64 columns
 * a line, one line a step of the summed axis; the first line plus 2048 bytes for 16 steps, and `pitch` the bytes from one
 * 64 columns to the next. The address is smem + offset, of which what is known when compiling is best the offset: the rest
 * is then common to many.
 *
 * Or along the summed axis in eights of lines that follow each other at `between` bytes, any number of lines, and begin at any line.
 *
 * Or windows that lie over each other, not swizzled: a row's first 16 bytes of a step stand 16 bytes behind the row's before
 * it, its last 16 `pitch` bytes behind its first; all aligned to 16. */
#ifndef ZC_WGMMA_TILE_CUH
#define ZC_WGMMA_TILE_CUH

// high: bytes between eights of rows, and whether they are swizzled.
ZC_INLINE u64 zc_wgmma_tile(u32 smem, u32 offset, u32 pitch, u32 high = 1024 >> 4 | 1u << 30) {
    const u32 place = smem & 0x3ffff; // the bits above are the rank of the block in its cluster
    const u32 low = (place >> 4 | pitch >> 4 << 16) + (offset >> 4);
    return (u64)high << 32 | low;
}
ZC_INLINE u64 zc_wgmma_along(u32 smem, u32 offset = 0) { return zc_wgmma_tile(smem, offset, 16); }
ZC_INLINE u64 zc_wgmma_spaced(u32 smem, u32 offset, u32 between) {
    return zc_wgmma_tile(smem, offset, 16, between >> 4 | 1u << 30);
}
ZC_INLINE u64 zc_wgmma_across(u32 smem, u32 offset, u32 pitch) { return zc_wgmma_tile(smem, offset, pitch); }
ZC_INLINE u64 zc_wgmma_windows(u32 smem, u32 offset, u32 pitch) { return zc_wgmma_tile(smem, offset, pitch, 128 >> 4); }

// A thread has rows of a product 8 apart; a map makes of two neighbours such rows, of each so many.
constexpr int ZC_WGMMA_TURNED_ROWS = 16;
// Types of A and of B, or of both, the other way round.
#define ZC_WGMMA_TURNED_S8       S8
#define ZC_WGMMA_TURNED_U8       U8
#define ZC_WGMMA_TURNED_S8U8     U8S8
#define ZC_WGMMA_TURNED_U8S8     S8U8
#define ZC_WGMMA_TURNED_OF(TYPE) ZC_WGMMA_TURNED_##TYPE
#define ZC_WGMMA_TURNED(TYPE)    ZC_WGMMA_TURNED_OF(TYPE)

#endif
