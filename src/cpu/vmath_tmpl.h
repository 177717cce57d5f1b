/* Elementary functions without branches, on a float or on a vector of floats: a template.
 *
 * The includer defines
 *   VM_F, VM_I   float and 32-bit integer type, or vectors of them with as many elements
 *   VM_MASK(c)   all bits set where the comparison c holds
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

/* Within 1 unit in the last place, denormal results included; exp(-inf) is 0, NaN stays NaN. */
VM_INLINE VM_F VM_FN(exp)(VM_F x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    /* Beyond these bounds the result is 0 or infinity; the numbers are the bits of -104 and 89. */
    VM_I low = VM_MASK(x < -104.0f), high = VM_MASK(x > 89.0f);
    x = VM_FN(unbits)((VM_FN(bits)(x) & ~(low | high)) | (low & -1026555904) | (high & 1118961664));
    /* x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, the first exact when times n */
    VM_F shifted = x * 1.44269504f + magic, n = shifted - magic;
    VM_F r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    /* exp(r) = 1 + r + r^2 q(r), q minimax for the relative error */
    VM_F q = r * 0.00138145986f + 0.00836871688f;
    q = q * r + 0.0416683880f;
    q = q * r + 0.166665206f;
    q = q * r + 0.499999934f;
    VM_F p = (q * r) * r + r + 1.0f;
    /* times 2^n in two steps, since 2^n itself may be out of range; 0x4b400000 are magic's bits */
    VM_I k = VM_FN(bits)(shifted) - 0x4b400000, half = k >> 1;
    VM_F a = VM_FN(unbits)(((half + 127) & 255) << 23);
    VM_F b = VM_FN(unbits)(((k - half + 127) & 255) << 23);
    return p * a * b;
}
