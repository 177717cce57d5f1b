#include "op/kernels.h"

#include <string.h>

#include "base/mem.h"

static const char *const names[] = {
#define FAMILY(name, template) #name,
#include "op/kernels.def"
};

static const struct {
    zc_op op;
    int family;
    bool offered;
} rows[] = {
#define KERNEL(op, family)  {ZC_OP_##op, ZC_FAMILY_##family, false},
#define OFFERED(op, family) {ZC_OP_##op, ZC_FAMILY_##family, true},
#include "op/kernels.def"
};

static const struct {
    bool given;
    int low, high;
} archs[ZC_FAMILY_COUNT] = {
#define ARCHS(family, low, high) [ZC_FAMILY_##family] = {true, low, high},
#include "op/kernels.def"
};

static const zc_rows row_counts[ZC_FAMILY_COUNT] = {
#define ROWS(family, low, high) [ZC_FAMILY_##family] = {low, high},
#include "op/kernels.def"
};

static const bool half[ZC_FAMILY_COUNT] = {
#define HALF(family) [ZC_FAMILY_##family] = true,
#include "op/kernels.def"
};

static const bool single[ZC_FAMILY_COUNT] = {
#define SINGLE(family) [ZC_FAMILY_##family] = true,
#include "op/kernels.def"
};

static const struct {
    bool given;
    int bytes;
} lean[ZC_FAMILY_COUNT] = {
#define LEAN(family, bytes) [ZC_FAMILY_##family] = {true, bytes},
#include "op/kernels.def"
};

static const zc_takes takes[ZC_FAMILY_COUNT] = {
#define TAKES(family, end, start) [ZC_FAMILY_##family] = {ZC_TAKES_##end, ZC_TAKES_##start, false},
#include "op/kernels.def"
};

static const bool widens[ZC_FAMILY_COUNT] = {
#define WIDENS(family) [ZC_FAMILY_##family] = true,
#include "op/kernels.def"
};

int zc_family_find(const char *name)
{
    for (int f = 0; f < ZC_FAMILY_COUNT; f++)
        if (strcmp(names[f], name) == 0) return f;
    return -1;
}

bool zc_family_serves(int family, int arch)
{
    return !archs[family].given || (arch >= archs[family].low && arch <= archs[family].high);
}

bool zc_family_makes(int family, zc_dtype dtype)
{
    if (single[family]) return dtype == ZC_F32;
    return !half[family] || dtype == ZC_F16 || dtype == ZC_BF16;
}

int zc_family_lean(int family)
{
    return family >= 0 && lean[family].given ? lean[family].bytes : -1;
}

zc_takes zc_family_takes(int family)
{
    zc_takes own = takes[family];
    own.widens = widens[family];
    return own;
}

zc_rows zc_family_rows(int family)
{
    return row_counts[family];
}

int zc_family_of(zc_op op, int i)
{
    if (zc_op_get(op)->flags & ZC_OPF_POINTWISE && op != ZC_OP_Pointwise)
        return i == 0 ? ZC_FAMILY_pointwise : -1;
    for (size_t r = 0; r < ZC_COUNTOF(rows); r++)
        if (rows[r].op == op && i-- == 0) return rows[r].family;
    return -1;
}

bool zc_family_offered(zc_op op, int family)
{
    for (size_t r = 0; r < ZC_COUNTOF(rows); r++)
        if (rows[r].op == op && rows[r].family == family) return rows[r].offered;
    return false;
}

zc_takes zc_takes_of(zc_op op, zc_dtype dtype, int low, int high)
{
    zc_takes all = {ZC_TAKES_ANY, ZC_TAKES_ANY, true};
    if (zc_op_get(op)->flags & (ZC_OPF_SUMS | ZC_OPF_GIVEN_EPILOGUE))
        return (zc_takes){ZC_TAKES_NONE, ZC_TAKES_NONE, false};
    for (int i = 0, f; (f = zc_family_of(op, i)) >= 0; i++) {
        bool apart = archs[f].given && (archs[f].high < low || archs[f].low > high);
        if (apart || zc_family_offered(op, f) || !zc_family_makes(f, dtype)) continue;
        all.at_end &= takes[f].at_end;
        all.at_start &= takes[f].at_start;
        all.widens &= widens[f];
    }
    return all;
}

/* ---- how operands lie ---- */

static bool is_one(zc_dim d)
{
    return zc_dim_is_const(d) && d.k == 1;
}

/* Does the operand go on along this axis of the shape it broadcasts to? 0, or 1, or another number
 * for each axis where only a run knows. */
static int along(zc_shape to, zc_shape operand, int axis)
{
    int own = axis - (to.rank - operand.rank);
    if (own < 0 || is_one(operand.dims[own])) return 0;
    return zc_dim_eq(operand.dims[own], to.dims[axis]) ? 1 : 2 + axis;
}

static unsigned lies(zc_shape to, zc_shape operand)
{
    bool none = true, all = true;
    int columns = to.rank > 0 ? along(to, operand, to.rank - 1) : 0;
    for (int d = 0; d + 1 < to.rank; d++) {
        int goes_on = along(to, operand, d);
        none = none && goes_on == 0;
        all = all && (goes_on == 1 || is_one(to.dims[d]));
    }
    if (columns > 1 || (!none && !all)) return ZC_LIES_OTHER;
    if (none) return columns ? ZC_LIES_ROW : ZC_LIES_SCALAR;
    return columns ? ZC_LIES_TILE : ZC_LIES_COLUMN;
}

unsigned zc_lies(zc_shape to, int n, const zc_shape *operands)
{
    unsigned ways = 0;
    for (int i = 0; i < n; i++) ways |= lies(to, operands[i]);
    return ways;
}

/* The axes of work on the shape with these operands, once they are joined. */
static int work_axes(zc_shape to, int n, const zc_shape *operands)
{
    int axes = 0, last = -1;
    for (int d = 0; d < to.rank; d++) {
        bool joined = last >= 0;
        if (is_one(to.dims[d])) continue;
        for (int i = 0; i < n; i++)
            joined = joined && along(to, operands[i], d) == along(to, operands[i], last);
        axes += !joined;
        last = d;
    }
    return axes;
}

bool zc_kernel_type(zc_dtype dtype)
{
    return zc_dtype_bits(dtype) >= 8 && zc_dtype_class(dtype) != ZC_CLASS_COMPLEX;
}

const char *zc_takes_not(zc_takes can, const zc_work *w)
{
    const unsigned ways = w->at_end ? can.at_end : can.at_start;
    if (!ways) return w->at_end ? "pointwise work at the end" : "pointwise work at the beginning";
    if (!zc_dtype_is_float(w->dtype) && !w->bytes) return "pointwise work on what is not float";
    if (w->widens && !can.widens) return "results of f32 of operands of 16 bits";
    if (zc_lies(w->to, w->n, w->in) & ~ways)
        return "pointwise work whose operands are no rows or columns";
    for (int i = 0; i < w->n; i++)
        if (!zc_kernel_type(w->types[i]))
            return "pointwise work whose operands' type it cannot load";
    if (work_axes(w->to, w->n, w->in) > ZC_TAKES_AXES)
        return "pointwise work whose operands broadcast along too many axes";
    return NULL;
}
