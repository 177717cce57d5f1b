#include "check.h"

#define C(name, by, operands, element_types, ...)                                                  \
    {.op = #name, .family = #by, .in = operands, .types = element_types, __VA_ARGS__},

#define N    "n=33; n=1; n=2; n=31; n=32; n=1023; n=1025; n=0"
#define NM   "n=7,m=33; n=1,m=1; n=2,m=31; n=32,m=32; n=3,m=1025; n=1023,m=2; n=5,m=0; n=0,m=5"
#define ROWS "n=7,m=33; n=1,m=1; n=2,m=31; n=33,m=32; n=3,m=1025; n=1,m=1023; n=257,m=2; n=0,m=5"
/* Two nearly equal numbers have no mean that f32 tells from them: rows of 5 at least. */
#define CENTRED "n=7,m=33; n=1,m=1; n=2,m=31; n=33,m=32; n=3,m=1025; n=1,m=1023; n=257,m=5; n=0,m=5"
#define LARGE   "n=1000003"
#define FLAT    "n=16777216"
#define WIDE    "n=4096,m=4096; n=8192,m=512"
#define F       "f32 f16 bf16 f64"
#define H       "f16 bf16"
#define MOVED   "f32 f16 u8 f64 i64 bool"

const kc_case kc_cases[] = {
#include "cases_attention.def"
#include "cases_conv.def"
#include "cases_conv_sides.def"
#include "cases_index.def"
#include "cases_matmul.def"
#include "cases_misc.def"
#include "cases_move.def"
#include "cases_pitched.def"
#include "cases_pointwise.def"
#include "cases_reduce.def"
};
const size_t kc_case_count = ZC_COUNTOF(kc_cases);
