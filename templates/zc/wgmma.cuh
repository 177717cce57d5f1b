/* Matrix products of a warpgroup (four neighbouring warps from a multiple of four on; sm_90a): d += a * b, 64 x n, sums
 * in registers, both factors in shared memory, described by zc_wgmma_along or zc_wgmma_across (zc/wgmma_tile.cuh).
 *
 * ZC_WGMMA(name, n, TYPE, across) defines `void name(SUM (&d)[n / 2], u64 a, u64 b, bool add)`: the product of
 * 64 x 16 elements of A by n x 16 of B. n is a number 8, 16 ... 256, TYPE F16 or BF16; sums are f32. A lies along the
 * summed axis; B too, or with `across` 1 its columns are contiguous. Without add, d is overwritten; called without the argument it is not even read, so
 * that nothing is kept for it.
 * ZC_WGMMA_ACROSS(name, n, TYPE, across_a, across): with across_a 1, A's rows are contiguous instead, 64 of them a line.
 *
 * ZC_WGMMA_ALONG(name, n, TYPE): the same for TYPE TF32, of 8 elements instead of 16, and E4M3, S8, S8U8 (of A and of B),
 * U8S8 or U8, of 32, also 32 bytes of a line; both factors lie along the summed axis. Sums of integers are i32; their n is
 * 24 or a multiple of 16, or 8.
 *
 * ZC_WGMMA_HELD(name, n, TYPE, across) defines `void name(SUM (&d)[n / 2], const u32 (&a)[4], u64 b, bool add)`: A in
 * registers, two elements each, the first in the low half: those that d has in the same place with n = 16, row by row.
 * They must not change until the product is done. ZC_WGMMA_HELD_ALONG(name, n, TYPE) does of ZC_WGMMA_ALONG's types, with the
 * bytes of A that such elements would have in these registers.
 *
 * ZC_WGMMA_SPARSE(name, n, TYPE, selector) defines `void name(SUM (&d)[n / 2], u64 a, u64 b, const u32 &places, bool add)`: the product
 * of 64 x 32 elements of A by n x 32 of B, both along the summed axis, 64 bytes of a line of B. Of each four neighbours of A two
 * are stored, 16 elements of a row; places says where they stand: of the threads whose number modulo 4 is twice the selector or
 * one more, two bits for each, the lower place first. The first of two such threads has 16 neighbours of the row that it has first of
 * d in its low half and of its second row in the high half, the other one the next 16. The word must not change until the product
 * is done.
 *
 * Thread t of the warpgroup has of row 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 % 2) column
 * 8 * (i / 4) + 2 * (t % 4) + i % 2 as d[i].
 *
 * zc_wgmma_fence before the first product that reads registers or shared memory the warpgroup wrote; commit closes a
 * group of products, wait<N> returns when all but the newest N groups are done. */
#ifndef ZC_WGMMA_CUH
#define ZC_WGMMA_CUH
#include "zc/ptx.cuh"

/* ---- Operands 0 to n / 2 - 1 of a product with n columns, in text and as outputs ---- */

#define ZC_WGMMA_TEXT_8 "%0, %1, %2, %3"
#define ZC_WGMMA_TEXT_16 ZC_WGMMA_TEXT_8 ", %4, %5, %6, %7"
#define ZC_WGMMA_TEXT_24 ZC_WGMMA_TEXT_16 ", %8, %9, %10, %11"
#define ZC_WGMMA_TEXT_32 ZC_WGMMA_TEXT_24 ", %12, %13, %14, %15"
#define ZC_WGMMA_TEXT_40 ZC_WGMMA_TEXT_32 ", %16, %17, %18, %19"
#define ZC_WGMMA_TEXT_48 ZC_WGMMA_TEXT_40 ", %20, %21, %22, %23"
#define ZC_WGMMA_TEXT_56 ZC_WGMMA_TEXT_48 ", %24, %25, %26, %27"
#define ZC_WGMMA_TEXT_64 ZC_WGMMA_TEXT_56 ", %28, %29, %30, %31"
#define ZC_WGMMA_TEXT_72 ZC_WGMMA_TEXT_64 ", %32, %33, %34, %35"
#define ZC_WGMMA_TEXT_80 ZC_WGMMA_TEXT_72 ", %36, %37, %38, %39"
#define ZC_WGMMA_TEXT_88 ZC_WGMMA_TEXT_80 ", %40, %41, %42, %43"
#define ZC_WGMMA_TEXT_96 ZC_WGMMA_TEXT_88 ", %44, %45, %46, %47"
#define ZC_WGMMA_TEXT_104 ZC_WGMMA_TEXT_96 ", %48, %49, %50, %51"
#define ZC_WGMMA_TEXT_112 ZC_WGMMA_TEXT_104 ", %52, %53, %54, %55"
#define ZC_WGMMA_TEXT_120 ZC_WGMMA_TEXT_112 ", %56, %57, %58, %59"
#define ZC_WGMMA_TEXT_128 ZC_WGMMA_TEXT_120 ", %60, %61, %62, %63"
#define ZC_WGMMA_TEXT_136 ZC_WGMMA_TEXT_128 ", %64, %65, %66, %67"
#define ZC_WGMMA_TEXT_144 ZC_WGMMA_TEXT_136 ", %68, %69, %70, %71"
#define ZC_WGMMA_TEXT_152 ZC_WGMMA_TEXT_144 ", %72, %73, %74, %75"
#define ZC_WGMMA_TEXT_160 ZC_WGMMA_TEXT_152 ", %76, %77, %78, %79"
#define ZC_WGMMA_TEXT_168 ZC_WGMMA_TEXT_160 ", %80, %81, %82, %83"
#define ZC_WGMMA_TEXT_176 ZC_WGMMA_TEXT_168 ", %84, %85, %86, %87"
#define ZC_WGMMA_TEXT_184 ZC_WGMMA_TEXT_176 ", %88, %89, %90, %91"
#define ZC_WGMMA_TEXT_192 ZC_WGMMA_TEXT_184 ", %92, %93, %94, %95"
#define ZC_WGMMA_TEXT_200 ZC_WGMMA_TEXT_192 ", %96, %97, %98, %99"
#define ZC_WGMMA_TEXT_208 ZC_WGMMA_TEXT_200 ", %100, %101, %102, %103"
#define ZC_WGMMA_TEXT_216 ZC_WGMMA_TEXT_208 ", %104, %105, %106, %107"
#define ZC_WGMMA_TEXT_224 ZC_WGMMA_TEXT_216 ", %108, %109, %110, %111"
#define ZC_WGMMA_TEXT_232 ZC_WGMMA_TEXT_224 ", %112, %113, %114, %115"
#define ZC_WGMMA_TEXT_240 ZC_WGMMA_TEXT_232 ", %116, %117, %118, %119"
#define ZC_WGMMA_TEXT_248 ZC_WGMMA_TEXT_240 ", %120, %121, %122, %123"
#define ZC_WGMMA_TEXT_256 ZC_WGMMA_TEXT_248 ", %124, %125, %126, %127"

#define ZC_WGMMA_FOUR(c, d, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define ZC_WGMMA_SUMS_8(c, d) ZC_WGMMA_FOUR(c, d, 0)
#define ZC_WGMMA_SUMS_16(c, d) ZC_WGMMA_SUMS_8(c, d), ZC_WGMMA_FOUR(c, d, 4)
#define ZC_WGMMA_SUMS_24(c, d) ZC_WGMMA_SUMS_16(c, d), ZC_WGMMA_FOUR(c, d, 8)
#define ZC_WGMMA_SUMS_32(c, d) ZC_WGMMA_SUMS_24(c, d), ZC_WGMMA_FOUR(c, d, 12)
#define ZC_WGMMA_SUMS_40(c, d) ZC_WGMMA_SUMS_32(c, d), ZC_WGMMA_FOUR(c, d, 16)
#define ZC_WGMMA_SUMS_48(c, d) ZC_WGMMA_SUMS_40(c, d), ZC_WGMMA_FOUR(c, d, 20)
#define ZC_WGMMA_SUMS_56(c, d) ZC_WGMMA_SUMS_48(c, d), ZC_WGMMA_FOUR(c, d, 24)
#define ZC_WGMMA_SUMS_64(c, d) ZC_WGMMA_SUMS_56(c, d), ZC_WGMMA_FOUR(c, d, 28)
#define ZC_WGMMA_SUMS_72(c, d) ZC_WGMMA_SUMS_64(c, d), ZC_WGMMA_FOUR(c, d, 32)
#define ZC_WGMMA_SUMS_80(c, d) ZC_WGMMA_SUMS_72(c, d), ZC_WGMMA_FOUR(c, d, 36)
#define ZC_WGMMA_SUMS_88(c, d) ZC_WGMMA_SUMS_80(c, d), ZC_WGMMA_FOUR(c, d, 40)
#define ZC_WGMMA_SUMS_96(c, d) ZC_WGMMA_SUMS_88(c, d), ZC_WGMMA_FOUR(c, d, 44)
#define ZC_WGMMA_SUMS_104(c, d) ZC_WGMMA_SUMS_96(c, d), ZC_WGMMA_FOUR(c, d, 48)
#define ZC_WGMMA_SUMS_112(c, d) ZC_WGMMA_SUMS_104(c, d), ZC_WGMMA_FOUR(c, d, 52)
#define ZC_WGMMA_SUMS_120(c, d) ZC_WGMMA_SUMS_112(c, d), ZC_WGMMA_FOUR(c, d, 56)
#define ZC_WGMMA_SUMS_128(c, d) ZC_WGMMA_SUMS_120(c, d), ZC_WGMMA_FOUR(c, d, 60)
#define ZC_WGMMA_SUMS_136(c, d) ZC_WGMMA_SUMS_128(c, d), ZC_WGMMA_FOUR(c, d, 64)
#define ZC_WGMMA_SUMS_144(c, d) ZC_WGMMA_SUMS_136(c, d), ZC_WGMMA_FOUR(c, d, 68)
#define ZC_WGMMA_SUMS_152(c, d) ZC_WGMMA_SUMS_144(c, d), ZC_WGMMA_FOUR(c, d, 72)
#define ZC_WGMMA_SUMS_160(c, d) ZC_WGMMA_SUMS_152(c, d), ZC_WGMMA_FOUR(c, d, 76)
#define ZC_WGMMA_SUMS_168(c, d) ZC_WGMMA_SUMS_160(c, d), ZC_WGMMA_FOUR(c, d, 80)
#define ZC_WGMMA_SUMS_176(c, d) ZC_WGMMA_SUMS_168(c, d), ZC_WGMMA_FOUR(c, d, 84)
#define ZC_WGMMA_SUMS_184(c, d) ZC_WGMMA_SUMS_176(c, d), ZC_WGMMA_FOUR(c, d, 88)
#define ZC_WGMMA_SUMS_192(c, d) ZC_WGMMA_SUMS_184(c, d), ZC_WGMMA_FOUR(c, d, 92)
#define ZC_WGMMA_SUMS_200(c, d) ZC_WGMMA_SUMS_192(c, d), ZC_WGMMA_FOUR(c, d, 96)
#define ZC_WGMMA_SUMS_208(c, d) ZC_WGMMA_SUMS_200(c, d), ZC_WGMMA_FOUR(c, d, 100)
#define ZC_WGMMA_SUMS_216(c, d) ZC_WGMMA_SUMS_208(c, d), ZC_WGMMA_FOUR(c, d, 104)
#define ZC_WGMMA_SUMS_224(c, d) ZC_WGMMA_SUMS_216(c, d), ZC_WGMMA_FOUR(c, d, 108)
#define ZC_WGMMA_SUMS_232(c, d) ZC_WGMMA_SUMS_224(c, d), ZC_WGMMA_FOUR(c, d, 112)
#define ZC_WGMMA_SUMS_240(c, d) ZC_WGMMA_SUMS_232(c, d), ZC_WGMMA_FOUR(c, d, 116)
#define ZC_WGMMA_SUMS_248(c, d) ZC_WGMMA_SUMS_240(c, d), ZC_WGMMA_FOUR(c, d, 120)
#define ZC_WGMMA_SUMS_256(c, d) ZC_WGMMA_SUMS_248(c, d), ZC_WGMMA_FOUR(c, d, 124)

/* The operands behind them: descriptors of A and B, and whether to add; or A's four registers, B, and whether to add. */
#define ZC_WGMMA_REST_8(use) use("%4", "%5", "%6", "%7", "%8", "%9")
#define ZC_WGMMA_REST_16(use) use("%8", "%9", "%10", "%11", "%12", "%13")
#define ZC_WGMMA_REST_24(use) use("%12", "%13", "%14", "%15", "%16", "%17")
#define ZC_WGMMA_REST_32(use) use("%16", "%17", "%18", "%19", "%20", "%21")
#define ZC_WGMMA_REST_40(use) use("%20", "%21", "%22", "%23", "%24", "%25")
#define ZC_WGMMA_REST_48(use) use("%24", "%25", "%26", "%27", "%28", "%29")
#define ZC_WGMMA_REST_56(use) use("%28", "%29", "%30", "%31", "%32", "%33")
#define ZC_WGMMA_REST_64(use) use("%32", "%33", "%34", "%35", "%36", "%37")
#define ZC_WGMMA_REST_72(use) use("%36", "%37", "%38", "%39", "%40", "%41")
#define ZC_WGMMA_REST_80(use) use("%40", "%41", "%42", "%43", "%44", "%45")
#define ZC_WGMMA_REST_88(use) use("%44", "%45", "%46", "%47", "%48", "%49")
#define ZC_WGMMA_REST_96(use) use("%48", "%49", "%50", "%51", "%52", "%53")
#define ZC_WGMMA_REST_104(use) use("%52", "%53", "%54", "%55", "%56", "%57")
#define ZC_WGMMA_REST_112(use) use("%56", "%57", "%58", "%59", "%60", "%61")
#define ZC_WGMMA_REST_120(use) use("%60", "%61", "%62", "%63", "%64", "%65")
#define ZC_WGMMA_REST_128(use) use("%64", "%65", "%66", "%67", "%68", "%69")
#define ZC_WGMMA_REST_136(use) use("%68", "%69", "%70", "%71", "%72", "%73")
#define ZC_WGMMA_REST_144(use) use("%72", "%73", "%74", "%75", "%76", "%77")
#define ZC_WGMMA_REST_152(use) use("%76", "%77", "%78", "%79", "%80", "%81")
#define ZC_WGMMA_REST_160(use) use("%80", "%81", "%82", "%83", "%84", "%85")
#define ZC_WGMMA_REST_168(use) use("%84", "%85", "%86", "%87", "%88", "%89")
#define ZC_WGMMA_REST_176(use) use("%88", "%89", "%90", "%91", "%92", "%93")
#define ZC_WGMMA_REST_184(use) use("%92", "%93", "%94", "%95", "%96", "%97")
#define ZC_WGMMA_REST_192(use) use("%96", "%97", "%98", "%99", "%100", "%101")
#define ZC_WGMMA_REST_200(use) use("%100", "%101", "%102", "%103", "%104", "%105")
#define ZC_WGMMA_REST_208(use) use("%104", "%105", "%106", "%107", "%108", "%109")
#define ZC_WGMMA_REST_216(use) use("%108", "%109", "%110", "%111", "%112", "%113")
#define ZC_WGMMA_REST_224(use) use("%112", "%113", "%114", "%115", "%116", "%117")
#define ZC_WGMMA_REST_232(use) use("%116", "%117", "%118", "%119", "%120", "%121")
#define ZC_WGMMA_REST_240(use) use("%120", "%121", "%122", "%123", "%124", "%125")
#define ZC_WGMMA_REST_248(use) use("%124", "%125", "%126", "%127", "%128", "%129")
#define ZC_WGMMA_REST_256(use) use("%128", "%129", "%130", "%131", "%132", "%133")

/* ---- Types: sum, its register class, instruction, and what follows the flag ---- */

#define ZC_WGMMA_F16(use, ...)  use("k16.f32.f16.f16", ", 1, 1, ", "f", f32, __VA_ARGS__)
#define ZC_WGMMA_BF16(use, ...) use("k16.f32.bf16.bf16", ", 1, 1, ", "f", f32, __VA_ARGS__)
#define ZC_WGMMA_TF32(use, ...) use("k8.f32.tf32.tf32", ", 1, 1", "f", f32, __VA_ARGS__)
#define ZC_WGMMA_E4M3(use, ...) use("k32.f32.e4m3.e4m3", ", 1, 1", "f", f32, __VA_ARGS__)
#define ZC_WGMMA_S8(use, ...)   use("k32.s32.s8.s8", "", "r", i32, __VA_ARGS__)
#define ZC_WGMMA_S8U8(use, ...) use("k32.s32.s8.u8", "", "r", i32, __VA_ARGS__)
#define ZC_WGMMA_U8S8(use, ...) use("k32.s32.u8.s8", "", "r", i32, __VA_ARGS__)
#define ZC_WGMMA_U8(use, ...)   use("k32.s32.u8.u8", "", "r", i32, __VA_ARGS__)

#define ZC_WGMMA_ADD(a, b, add, ...) add
#define ZC_WGMMA_FACTORS(a, b, ...) a ", " b
#define ZC_WGMMA_CODE(op, end, n)                                                                                      \
    "{ .reg .pred p; setp.ne.b32 p, " ZC_WGMMA_REST_##n(ZC_WGMMA_ADD) ", 0;\n"                                         \
    "wgmma.mma_async.sync.aligned.m64n" #n op " {" ZC_WGMMA_TEXT_##n "}, " ZC_WGMMA_REST_##n(ZC_WGMMA_FACTORS) ", p" end "; }"
#define ZC_WGMMA_BODY(op, end, c, SUM, name, n)                                                                        \
    ZC_INLINE void name(SUM (&d)[n / 2], u64 a, u64 b, bool add) {                                                     \
        asm volatile(ZC_WGMMA_CODE(op, end, n) : ZC_WGMMA_SUMS_##n("+" c, d) : "l"(a), "l"(b), "r"((u32)add));         \
    }                                                                                                                  \
    ZC_INLINE void name(SUM (&d)[n / 2], u64 a, u64 b) {                                                               \
        asm volatile(ZC_WGMMA_CODE(op, end, n) : ZC_WGMMA_SUMS_##n("=" c, d) : "l"(a), "l"(b), "r"(0u));               \
    }
#define ZC_WGMMA_DEFINE(op, flags, c, SUM, name, n, across_a, across)                                                  \
    ZC_WGMMA_BODY(op, flags #across_a ", " #across, c, SUM, name, n)
#define ZC_WGMMA_OF(name, n, TYPE, across_a, across) ZC_WGMMA_##TYPE(ZC_WGMMA_DEFINE, name, n, across_a, across)
#define ZC_WGMMA_ACROSS(name, n, TYPE, across_a, across) ZC_WGMMA_OF(name, n, TYPE, across_a, across)
#define ZC_WGMMA(name, n, TYPE, across) ZC_WGMMA_OF(name, n, TYPE, 0, across)
#define ZC_WGMMA_ALONG_OF(name, n, TYPE) ZC_WGMMA_##TYPE(ZC_WGMMA_BODY, name, n)
#define ZC_WGMMA_ALONG(name, n, TYPE) ZC_WGMMA_ALONG_OF(name, n, TYPE)

#define ZC_WGMMA_SPARSE_F16  "k32.f32.f16.f16"
#define ZC_WGMMA_SPARSE_BF16 "k32.f32.bf16.bf16"
#define ZC_WGMMA_SPARSE_ADD(a, b, places, add, ...) add
#define ZC_WGMMA_SPARSE_FACTORS(a, b, places, ...) a ", " b ", " places
#define ZC_WGMMA_SPARSE_OF(name, n, TYPE, selector)                                                                    \
    ZC_INLINE void name(f32 (&d)[n / 2], u64 a, u64 b, const u32 &places, bool add) {                                  \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, " ZC_WGMMA_REST_##n(ZC_WGMMA_SPARSE_ADD) ", 0;\n"                 \
                     "wgmma.mma_async.sp.sync.aligned.m64n" #n ZC_WGMMA_SPARSE_##TYPE " {" ZC_WGMMA_TEXT_##n "}, "      \
                     ZC_WGMMA_REST_##n(ZC_WGMMA_SPARSE_FACTORS) ", " #selector ", p, 1, 1, 0, 0; }"                    \
                     : ZC_WGMMA_SUMS_##n("+f", d)                                                                      \
                     : "l"(a), "l"(b), "r"(places), "r"((u32)add));                                                    \
    }
#define ZC_WGMMA_SPARSE(name, n, TYPE, selector) ZC_WGMMA_SPARSE_OF(name, n, TYPE, selector)

#define ZC_WGMMA_HELD_ADD(a0, a1, a2, a3, b, add) add
#define ZC_WGMMA_HELD_FACTORS(a0, a1, a2, a3, b, add) "{" a0 ", " a1 ", " a2 ", " a3 "}, " b
#define ZC_WGMMA_HELD_CODE(op, flags, n, across)                                                                       \
    "{ .reg .pred p; setp.ne.b32 p, " ZC_WGMMA_REST_##n(ZC_WGMMA_HELD_ADD) ", 0;\n"                                     \
    "wgmma.mma_async.sync.aligned.m64n" #n op " {" ZC_WGMMA_TEXT_##n "}, "                                              \
    ZC_WGMMA_REST_##n(ZC_WGMMA_HELD_FACTORS) ", p" flags #across "; }"
#define ZC_WGMMA_HELD_DEFINE(op, flags, c, SUM, name, n, across)                                                       \
    ZC_INLINE void name(SUM (&d)[n / 2], const u32 (&a)[4], u64 b, bool add) {                                         \
        asm volatile(ZC_WGMMA_HELD_CODE(op, flags, n, across)                                                          \
                     : ZC_WGMMA_SUMS_##n("+" c, d)                                                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((u32)add));                             \
    }                                                                                                                  \
    ZC_INLINE void name(SUM (&d)[n / 2], const u32 (&a)[4], u64 b) {                                                   \
        asm volatile(ZC_WGMMA_HELD_CODE(op, flags, n, across)                                                          \
                     : ZC_WGMMA_SUMS_##n("=" c, d)                                                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(0u));                                   \
    }
#define ZC_WGMMA_HELD_OF(name, n, TYPE, across) ZC_WGMMA_##TYPE(ZC_WGMMA_HELD_DEFINE, name, n, across)
#define ZC_WGMMA_HELD(name, n, TYPE, across) ZC_WGMMA_HELD_OF(name, n, TYPE, across)
#define ZC_WGMMA_HELD_ALONG(name, n, TYPE) ZC_WGMMA_HELD_OF(name, n, TYPE, )

#endif
