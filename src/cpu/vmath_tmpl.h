/* Elementary functions without branches, on a float or on a vector of floats: a template.
 *
 * The includer defines
 *   VM_F, VM_I   float and 32-bit integer type, or vectors of them with as many elements
 *   VM_MASK(c)   all bits set where the comparison c holds
 *   VM_MAX(a,b)  the greater; b where one is NaN; VM_MIN(a,b): the smaller
 *   VM_FN(name)  the function's name
 *   VM_INLINE    what stands before it
 * They use no fused multiply-add by themselves, so that every instance gives the same bits. */

VM_INLINE VM_I VM_FN(bits)(VM_F x)
{
    VM_I b;
    memcpy(&b, &x, sizeof b);
    return b;
}

VM_INLINE VM_F VM_FN(unbits)(VM_I b)
{
    VM_F x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* exp(x) is p * 2^n with p in [1/sqrt(2), sqrt(2)], within 1 unit in the last place. *n: the bits
 * of n + 1.5 * 2^23, whose low byte is n's. */
VM_INLINE VM_F VM_FN(exp_parts)(VM_F x, VM_I *n)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    /* x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, the first exact when times n */
    VM_F shifted = x * 1.44269504f + magic, whole = shifted - magic;
    VM_F r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
    /* exp(r) = 1 + r + r^2 q(r), q minimax for the relative error */
    VM_F q = r * 0.00138145986f + 0.00836871688f;
    q = q * r + 0.0416683880f;
    q = q * r + 0.166665206f;
    q = q * r + 0.499999934f;
    *n = VM_FN(bits)(shifted);
    return (q * r) * r + r + 1.0f;
}

/* 2^(n + by), where that is a normal number; the low byte of n counts. */
VM_INLINE VM_F VM_FN(power)(VM_I n, int32_t by)
{
    return VM_FN(unbits)(((n + (127 + by)) & 255) << 23);
}

/* Within 1 unit in the last place, denormal results included; exp(-inf) is 0, NaN stays NaN. */
VM_INLINE VM_F VM_FN(exp)(VM_F x)
{
    VM_I n;
    /* Beyond these bounds the result is 0 or infinity. */
    VM_F p = VM_FN(exp_parts)(VM_MIN(89.0f, VM_MAX(-104.0f, x)), &n);
    /* times 2^n in two steps, since 2^n itself may be out of range; 0x4b400000 are magic's bits */
    VM_I k = n - 0x4b400000, half = k >> 1;
    return p * VM_FN(power)(half, 0) * VM_FN(power)(k - half, 0);
}

/* mask ? a : b */
VM_INLINE VM_F VM_FN(pick)(VM_I mask, VM_F a, VM_F b)
{
    return VM_FN(unbits)((VM_FN(bits)(a) & mask) | (VM_FN(bits)(b) & ~mask));
}

VM_INLINE VM_F VM_FN(abs)(VM_F x)
{
    return VM_FN(unbits)(VM_FN(bits)(x) & 0x7fffffff);
}

/* |x| with the sign of s. */
VM_INLINE VM_F VM_FN(with_sign)(VM_F x, VM_F s)
{
    return VM_FN(unbits)((VM_FN(bits)(x) & 0x7fffffff) | (VM_FN(bits)(s) & (-0x7fffffff - 1)));
}

/* Both sides of the quotient times 2^-24, so that all that exp(-x) may be is in range in one step.
 */
VM_INLINE VM_F VM_FN(sigmoid)(VM_F x)
{
    const float small = 0x1p-24f;
    VM_I n;
    VM_F p = VM_FN(exp_parts)(VM_MIN(104.5f, VM_MAX(-70.0f, -x)), &n);
    return small / (p * VM_FN(power)(n, -24) + small);
}

/* A polynomial near 0, where 1 - e would cancel. */
VM_INLINE VM_F VM_FN(tanh)(VM_F x)
{
    VM_F a = VM_FN(abs)(x), z = x * x;
    VM_F e = VM_FN(exp)(a * -2.0f);
    VM_F far = (1.0f - e) / (1.0f + e);
    VM_F p = z * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    return VM_FN(pick)(VM_MASK(a < 0.625f), x + x * z * p, VM_FN(with_sign)(far, x));
}

/* Below 1 the odd polynomial, above it 1 - t(1/(1 + c x)) exp(-x^2) (Abramowitz and Stegun 7.1.26).
 */
VM_INLINE VM_F VM_FN(erf)(VM_F x)
{
    VM_F a = VM_FN(abs)(x), z = x * x;
    VM_F p = z * 7.853861353153693e-5f + -8.010193625184903e-4f;
    p = p * z + 5.188327685732524e-3f;
    p = p * z + -2.685381193529856e-2f;
    p = p * z + 1.128358514861418e-1f;
    p = p * z + -3.761262582423300e-1f;
    p = p * z + 1.128379165726710f;
    VM_F t = 1.0f / (1.0f + 0.3275911f * a);
    VM_F q = t * 1.061405429f + -1.453152027f;
    q = q * t + 1.421413741f;
    q = q * t + -0.284496736f;
    q = q * t + 0.254829592f;
    VM_F far = VM_FN(with_sign)(1.0f - q * t * VM_FN(exp)(-z), x);
    return VM_FN(pick)(VM_MASK(a < 1.0f), x * p, VM_FN(pick)(VM_MASK(x == x), far, x));
}

/* Negative: NaN; 0: -inf. Denormals are scaled up first. */
VM_INLINE VM_F VM_FN(log)(VM_F x)
{
    VM_I small = VM_MASK(x < 1.17549435e-38f);
    VM_F s = VM_FN(pick)(small, x * 8388608.0f, x);
    VM_I b = VM_FN(bits)(VM_FN(abs)(s)) - 0x3f3504f3; /* from sqrt(1/2) on */
    VM_I e = (b >> 23) - (small & 23);
    VM_F m = VM_FN(unbits)((b & 0x7fffff) + 0x3f3504f3) - 1.0f, z = m * m;
    VM_F magic = VM_FN(unbits)(e + 0x4b400000) - 12582912.0f; /* e as a float */
    VM_F p = m * 7.0376836292e-2f + -1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m + -1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m + -1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m + -2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    VM_F y = m * z * p + magic * -2.12194440e-4f - z * 0.5f;
    VM_F r = m + y + magic * 0.693359375f;
    VM_F infinite = x + x; /* inf and NaN pass through */
    r = VM_FN(pick)(VM_MASK(x < 3.4028235e38f) | VM_MASK(x == 3.4028235e38f), r, infinite);
    r = VM_FN(pick)(VM_MASK(x == 0.0f), -1.0f / (x * x), r);
    return VM_FN(pick)(VM_MASK(x < 0.0f), (x - x) / (x - x), r);
}

/* log(1 + x) with what the sum 1 + x lost put back. */
VM_INLINE VM_F VM_FN(log1p)(VM_F x)
{
    VM_F w = 1.0f + x;
    VM_F r = VM_FN(log)(w) - ((w - 1.0f) - x) / w;
    r = VM_FN(pick)(VM_MASK(w == 1.0f), x, r);
    return VM_FN(pick)(VM_MASK(x > 3.0e38f) | VM_MASK(w == 0.0f), VM_FN(log)(w), r);
}

VM_INLINE VM_F VM_FN(expm1)(VM_F x)
{
    VM_F p = x * 1.9841270e-4f + 1.3888889e-3f;
    p = p * x + 8.3333333e-3f;
    p = p * x + 4.1666667e-2f;
    p = p * x + 1.6666667e-1f;
    p = p * x + 0.5f;
    return VM_FN(pick)(VM_MASK(VM_FN(abs)(x) < 0.35f), x + x * x * p, VM_FN(exp)(x) - 1.0f);
}
