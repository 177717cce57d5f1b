/* The inner loops of reductions for one instruction set: see reduce_fast.c and simd.h. */
INNER(total, 0.0, a + v, a + b)
INNER(total_abs, 0.0, a + fabs(v), a + b)
INNER(total_square, 0.0, a + v * v, a + b)
INNER(total_exp, 0.0, a + exp(v - s), a + b)
INNER(product, 1.0, a *v, a *b)
INNER(greatest, -INFINITY, a >= v || a != a ? a : v, a >= b || a != a ? a : b)
INNER(least, INFINITY, a <= v || a != a ? a : v, a <= b || a != a ? a : b)
