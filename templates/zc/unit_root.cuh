// Points of the unit circle at rational angles.
#pragma once
#include "zc/device.cuh"

// cos and sin of 2 pi i / n for 0 <= i <= n < 2^60. The angle is brought to at most pi / 4 in integers, so that the
// result is exact at multiples of a quarter turn and as good as an f64 elsewhere.
ZC_DEV void zc_unit_root(i64 i, i64 n, f64 *cosine, f64 *sine) {
    const i64 quarters = (8 * i + n) / (2 * n);
    const f64 x = 1.57079632679489661923 * ((f64)(4 * i - quarters * n) / (f64)n), z = x * x;
    // Taylor's series: the first term left out is below 2^-58.
    const f64 s0 = 1.0 / 355687428096000.0;
    const f64 s1 = -1.0 / 1307674368000.0 + z * s0, s2 = 1.0 / 6227020800.0 + z * s1;
    const f64 s3 = -1.0 / 39916800.0 + z * s2, s4 = 1.0 / 362880.0 + z * s3;
    const f64 s5 = -1.0 / 5040.0 + z * s4, s6 = 1.0 / 120.0 + z * s5;
    const f64 s = x + x * z * (-1.0 / 6.0 + z * s6);
    const f64 c0 = 1.0 / 20922789888000.0;
    const f64 c1 = -1.0 / 87178291200.0 + z * c0, c2 = 1.0 / 479001600.0 + z * c1;
    const f64 c3 = -1.0 / 3628800.0 + z * c2, c4 = 1.0 / 40320.0 + z * c3;
    const f64 c5 = -1.0 / 720.0 + z * c4, c6 = 1.0 / 24.0 + z * c5;
    const f64 c = 1.0 - z * (0.5 - z * c6);
    const bool swap = quarters & 1;
    *cosine = quarters == 1 || quarters == 2 ? -(swap ? s : c) : swap ? s : c;
    *sine = quarters == 2 || quarters == 3 ? -(swap ? c : s) : swap ? c : s;
}
