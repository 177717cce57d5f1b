/* Fused attention on f32: a template over instruction sets (simd.h).
 *
 * A block of rows goes over the keys in blocks: scores by register tiles, the softmax's running
 * maximum and sum, then the products with the values, whose sums are rescaled when the maximum
 * grew. All orders of additions depend on the shapes alone. */

#define PANEL (2 * SIMD_VL) /* keys of a packed panel: [d][PANEL] */

/* ---- packing ---- */

/* Keys [0, n) of a panel, zeros behind them. */
SIMD_FUNC void SIMD_FN(attn_pack)(const float *k, int64_t pos, int64_t n, int64_t d, float *to)
{
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const float *a = k + j * pos, *b = a + pos, *c = b + pos, *e = c + pos;
        for (int64_t p = 0; p < d; p++) {
            simd_f4 four = {a[p], b[p], c[p], e[p]};
            memcpy(to + p * PANEL + j, &four, sizeof four);
        }
    }
    for (; j < PANEL; j++)
        for (int64_t p = 0; p < d; p++) to[p * PANEL + j] = j < n ? k[j * pos + p] : 0;
}

/* ---- scores ---- */

/* s[rows][PANEL] = q[rows][d] times a panel. */
SIMD_INLINE void SIMD_FN(score_tile)(const int rows, const float *q, int64_t d, const float *panel,
                                     float *s)
{
    vf acc[SIMD_ROWS][2];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (vf){0};
    for (int64_t p = 0; p < d; p++) {
        vf k0 = SIMD_FN(load)(panel + p * PANEL), k1 = SIMD_FN(load)(panel + p * PANEL + SIMD_VL);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = SIMD_FN(splat)(q[r * d + p]);
            acc[r][0] = SIMD_FMA(x, k0, acc[r][0]);
            acc[r][1] = SIMD_FMA(x, k1, acc[r][1]);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_FN(store)(s + r * ATTN_KEYS, acc[r][0]);
        SIMD_FN(store)(s + r * ATTN_KEYS + SIMD_VL, acc[r][1]);
    }
}

SIMD_INLINE void SIMD_FN(score_panel)(const attn_rows *t, const float *panel, float *s)
{
    int64_t d = t->a->d, r = 0;
    for (; r + SIMD_ROWS <= t->count; r += SIMD_ROWS)
        SIMD_FN(score_tile)(SIMD_ROWS, t->q + r * d, d, panel, s + r * ATTN_KEYS);
    for (; r + 2 <= t->count; r += 2)
        SIMD_FN(score_tile)(2, t->q + r * d, d, panel, s + r * ATTN_KEYS);
    if (r < t->count) SIMD_FN(score_tile)(1, t->q + r * d, d, panel, s + r * ATTN_KEYS);
}

SIMD_INLINE float SIMD_FN(dot)(const float *a, const float *b, int64_t n)
{
    vf acc[2] = {{0}, {0}};
    int64_t i = 0;
    for (; i + 2 * SIMD_VL <= n; i += 2 * SIMD_VL) {
        acc[0] = SIMD_FMA(SIMD_FN(load)(a + i), SIMD_FN(load)(b + i), acc[0]);
        acc[1] = SIMD_FMA(SIMD_FN(load)(a + i + SIMD_VL), SIMD_FN(load)(b + i + SIMD_VL), acc[1]);
    }
    for (; i + SIMD_VL <= n; i += SIMD_VL)
        acc[0] = SIMD_FMA(SIMD_FN(load)(a + i), SIMD_FN(load)(b + i), acc[0]);
    if (i < n)
        acc[1] = SIMD_FMA(SIMD_FN(load_part)(a + i, n - i, 0), SIMD_FN(load_part)(b + i, n - i, 0),
                          acc[1]);
    return SIMD_FN(sum)(acc[0] + acc[1]);
}

/* Scores of keys [j0, j0 + n) without packed panels: for a handful of rows. */
SIMD_INLINE void SIMD_FN(score_plain)(const attn_rows *t, int64_t j0, int64_t n)
{
    const zc_attn *a = t->a;
    const float *k = (const float *)a->k.t->data + a->k.at + t->b * a->k.batch + t->kv * a->k.head;
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < t->count; r++)
            t->s[r * ATTN_KEYS + j] = SIMD_FN(dot)(t->q + r * a->d, k + (j0 + j) * a->k.pos, a->d);
}

/* ---- masks and softmax of one row ---- */

/* s = cap * tanh(s / cap) */
SIMD_INLINE void SIMD_FN(cap_row)(float *s, int64_t n, float cap)
{
    for (int64_t j = 0; j < n; j += SIMD_VL)
        SIMD_FN(store)(s + j, SIMD_FN(vm_tanh)(SIMD_FN(load)(s + j) * (1 / cap)) * cap);
}

/* Adds n elements of a bias; minus infinity hides whatever the score is. */
SIMD_INLINE void SIMD_FN(add_row)(float *s, const float *bias, int64_t n, float hidden)
{
    const float masked = -(float)INFINITY;
    for (int64_t j = 0; j < n; j += SIMD_VL) {
        vf b = n - j >= SIMD_VL ? SIMD_FN(load)(bias + j)
                                : SIMD_FN(load_part)(bias + j, n - j, masked);
        vf v = SIMD_FN(load)(s + j) + b;
        SIMD_FN(store)(s + j, SIMD_FN(choose)(b == masked, SIMD_FN(splat)(hidden), v));
    }
}

SIMD_INLINE void SIMD_FN(mask_row)(float *s, const uint8_t *keep, int64_t n, float hidden)
{
    for (int64_t j = 0; j < n; j++) s[j] = keep[j] ? s[j] : hidden;
}

/* What the other bias has made of scores that this one hides does not count either. */
SIMD_INLINE void SIMD_FN(hide_row)(float *s, const float *bias, int64_t n, float hidden)
{
    for (int64_t j = 0; j < n; j++) s[j] = bias[j] == -(float)INFINITY ? hidden : s[j];
}

SIMD_INLINE void SIMD_FN(bias_row)(const zc_attn *a, const zc_attn_bias *bias, bool again,
                                   int64_t at, int64_t n, float *s)
{
    float hidden = (float)zc_attn_hidden(a);
    if (bias->t->dtype == ZC_BOOL)
        SIMD_FN(mask_row)(s, (const uint8_t *)bias->t->data + at, n, hidden);
    else if (again)
        SIMD_FN(hide_row)(s, (const float *)bias->t->data + at, n, hidden);
    else
        SIMD_FN(add_row)(s, (const float *)bias->t->data + at, n, hidden);
}

/* Both biases, and what the first one hides once more. */
SIMD_INLINE void SIMD_FN(bias_rows)(const zc_attn *a, int64_t b, int64_t h, int64_t i, int64_t j0,
                                    int64_t n, float *s)
{
    for (int x = 0; x < (a->bias[1].t ? 3 : 1); x++) {
        const zc_attn_bias *bias = &a->bias[x % 2];
        const int64_t *st = bias->strides;
        int64_t at = b * st[0] + h * st[1] + i * st[2] + j0;
        if (bias->t) SIMD_FN(bias_row)(a, bias, x == 2, at, n, s);
    }
}

/* Makes the scores of row r for keys [j0, j0 + n) final, in whole vectors, those that it does not
 * see minus infinity. false: it sees none of them. */
SIMD_INLINE bool SIMD_FN(finish_scores)(const attn_rows *t, int64_t r, int64_t j0, int64_t n)
{
    const zc_attn *a = t->a;
    int64_t group = a->heads / a->kv_heads, row = t->first + r, lo, hi;
    int64_t h = t->kv * group + row / a->nq, i = row % a->nq;
    float *s = t->s + r * ATTN_KEYS;
    zc_attn_range(a, t->b, i, &lo, &hi);
    for (int x = 0; x < 2; x++)
        if (a->bias[x].t && hi > a->bias[x].cols) hi = a->bias[x].cols;
    lo = lo > j0 ? lo - j0 : 0;
    hi = hi - j0 < n ? hi - j0 : n;
    if (hi <= lo) return false;
    for (int64_t j = hi; j < n || j % SIMD_VL; j++) s[j] = 0;
    if (zc_attn_even(a, t->b)) memset(s, 0, (size_t)hi * sizeof *s);
    if (a->softcap > 0) SIMD_FN(cap_row)(s, n, (float)a->softcap);
    SIMD_FN(bias_rows)(a, t->b, h, i, j0, hi, s);
    for (int64_t j = 0; j < lo; j++) s[j] = -(float)INFINITY;
    for (int64_t j = hi; j < n || j % SIMD_VL; j++) s[j] = -(float)INFINITY;
    return true;
}

/* NaN may get lost: the sum of the weights has it. */
SIMD_INLINE float SIMD_FN(row_max)(const float *s, int64_t n)
{
    vf top = SIMD_FN(load)(s);
    for (int64_t j = SIMD_VL; j < n; j += SIMD_VL) top = SIMD_MAX(SIMD_FN(load)(s + j), top);
    return SIMD_FN(top)(top);
}

/* s = exp(s - max); returns the sum. */
SIMD_INLINE float SIMD_FN(row_exp)(float *s, int64_t n, float max)
{
    vf sum = {0};
    for (int64_t j = 0; j < n; j += SIMD_VL) {
        vf e = SIMD_FN(vm_exp)(SIMD_FN(load)(s + j) - max);
        SIMD_FN(store)(s + j, e);
        sum = sum + e;
    }
    return SIMD_FN(sum)(sum);
}

/* y = x * by; they may be the same. */
SIMD_INLINE void SIMD_FN(scaled_row)(const float *x, int64_t n, float by, float *y)
{
    int64_t e = 0;
    for (; e + SIMD_VL <= n; e += SIMD_VL) SIMD_FN(store)(y + e, SIMD_FN(load)(x + e) * by);
    for (; e < n; e++) y[e] = x[e] * by;
}

/* Turns row r's scores into weights relative to the running maximum. */
SIMD_INLINE void SIMD_FN(soften)(const attn_rows *t, int64_t r, int64_t j0, int64_t n)
{
    const float masked = -(float)INFINITY;
    float *s = t->s + r * ATTN_KEYS, was = t->max[r];
    if (!SIMD_FN(finish_scores)(t, r, j0, n)) {
        memset(s, 0, (size_t)n * sizeof *s);
        return;
    }
    float top = SIMD_FN(row_max)(s, n), max = top > was || top != top ? top : was;
    if (max != was && was != masked) { /* under a masked maximum the sums are 0, or NaN for good */
        float by = zc_vm_exp(was - max);
        t->sum[r] *= by;
        float *o = t->o + r * t->v_size;
        if (by == 0)
            memset(o, 0, (size_t)t->v_size * sizeof *o); /* infinite ones too */
        else
            SIMD_FN(scaled_row)(o, t->v_size, by, o);
    }
    t->max[r] = max;
    t->sum[r] += SIMD_FN(row_exp)(s, n, max == masked ? 0 : max);
}

/* ---- values ---- */

/* o[rows][width vectors] += p[rows][n] times v[n][width vectors]. */
SIMD_INLINE void SIMD_FN(value_tile)(const int rows, const int width, const float *p, int64_t n,
                                     const float *v, int64_t v_pos, float *o, int64_t o_row)
{
    vf acc[SIMD_ROWS][2];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int w = 0; w < width; w++) acc[r][w] = SIMD_FN(load)(o + r * o_row + w * SIMD_VL);
    }
    for (int64_t j = 0; j < n; j++) {
        vf x[2];
        SIMD_UNROLL
        for (int w = 0; w < width; w++) x[w] = SIMD_FN(load)(v + j * v_pos + w * SIMD_VL);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            vf weight = SIMD_FN(splat)(p[r * ATTN_KEYS + j]);
            SIMD_UNROLL
            for (int w = 0; w < width; w++) acc[r][w] = SIMD_FMA(weight, x[w], acc[r][w]);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int w = 0; w < width; w++) SIMD_FN(store)(o + r * o_row + w * SIMD_VL, acc[r][w]);
    }
}

SIMD_INLINE void SIMD_FN(value_rows)(const attn_rows *t, const int rows, int64_t r, int64_t n,
                                     const float *v)
{
    const float *p = t->s + r * ATTN_KEYS;
    float *o = t->o + r * t->v_size;
    int64_t e = 0;
    for (; e + 2 * SIMD_VL <= t->v_size; e += 2 * SIMD_VL)
        SIMD_FN(value_tile)(rows, 2, p, n, v + e, t->v_pos, o + e, t->v_size);
    if (e < t->v_size) SIMD_FN(value_tile)(rows, 1, p, n, v + e, t->v_pos, o + e, t->v_size);
}

/* For one row: a value of weight 0 does not count, whatever it holds. */
SIMD_INLINE void SIMD_FN(add_seen_values)(const attn_rows *t, int64_t n, const float *v)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t e = 0; t->s[j] != 0 && e < t->v_size; e += SIMD_VL) {
            vf x = SIMD_FN(load)(v + j * t->v_pos + e), o = SIMD_FN(load)(t->o + e);
            SIMD_FN(store)(t->o + e, SIMD_FMA(SIMD_FN(splat)(t->s[j]), x, o));
        }
}

SIMD_INLINE void SIMD_FN(add_values)(const attn_rows *t, int64_t j0, int64_t n)
{
    const float *v = t->v + j0 * t->v_pos;
    int64_t r = 0;
    if (t->seen_only) {
        SIMD_FN(add_seen_values)(t, n, v);
        return;
    }
    for (; r + SIMD_ROWS <= t->count; r += SIMD_ROWS) SIMD_FN(value_rows)(t, SIMD_ROWS, r, n, v);
    for (; r + 2 <= t->count; r += 2) SIMD_FN(value_rows)(t, 2, r, n, v);
    if (r < t->count) SIMD_FN(value_rows)(t, 1, r, n, v);
}

/* ---- a block of rows ---- */

SIMD_INLINE void SIMD_FN(begin_rows)(const attn_rows *t)
{
    const zc_attn *a = t->a;
    int64_t group = a->heads / a->kv_heads;
    for (int64_t r = 0; r < t->count; r++) {
        int64_t h = t->kv * group + (t->first + r) / a->nq, i = (t->first + r) % a->nq;
        const float *q = (const float *)a->q.t->data + a->q.at + t->b * a->q.batch + h * a->q.head +
                         i * a->q.pos;
        SIMD_FN(scaled_row)(q, a->d, (float)a->scale, t->q + r * a->d);
        float sink = a->sink ? (float)zc_get(a->sink, h) : a->zero_sink ? 0 : -(float)INFINITY;
        t->max[r] = sink;
        t->sum[r] = sink == -(float)INFINITY ? 0 : zc_vm_exp(sink - sink);
    }
    memset(t->o, 0, (size_t)(t->count * t->v_size) * sizeof *t->o);
}

SIMD_INLINE float *SIMD_FN(row_y)(const attn_rows *t, int64_t r)
{
    const zc_attn *a = t->a;
    int64_t group = a->heads / a->kv_heads;
    int64_t h = t->kv * group + (t->first + r) / a->nq, i = (t->first + r) % a->nq;
    return (float *)a->y->data + a->y_at.at + t->b * a->y_at.batch + h * a->y_at.head +
           i * a->y_at.pos;
}

SIMD_INLINE void SIMD_FN(end_rows)(const attn_rows *t)
{
    for (int64_t r = 0; r < t->count; r++) {
        float by = t->sum[r] == 0 ? 0 : 1 / t->sum[r];
        SIMD_FN(scaled_row)(t->o + r * t->v_size, t->a->dv, by, SIMD_FN(row_y)(t, r));
    }
}

/* Keys that any of the rows may see. */
SIMD_INLINE void SIMD_FN(rows_range)(const attn_rows *t, int64_t *lo, int64_t *hi)
{
    *lo = t->a->nk;
    *hi = 0;
    for (int64_t r = 0; r < t->count; r++) {
        int64_t l, h;
        zc_attn_range(t->a, t->b, (t->first + r) % t->a->nq, &l, &h);
        if (l >= h) continue;
        *lo = l < *lo ? l : *lo;
        *hi = h > *hi ? h : *hi;
    }
}

SIMD_INLINE void SIMD_FN(attend)(const attn_rows *t)
{
    int64_t lo, hi, d = t->a->d;
    SIMD_FN(begin_rows)(t);
    SIMD_FN(rows_range)(t, &lo, &hi);
    for (int64_t j0 = lo - lo % PANEL; j0 < hi; j0 += ATTN_KEYS) {
        int64_t n = hi - j0 < ATTN_KEYS ? hi - j0 : ATTN_KEYS;
        if (t->keys)
            for (int64_t j = 0; j < n; j += PANEL)
                SIMD_FN(score_panel)(t, t->keys + (j0 + j) * d, t->s + j);
        else
            SIMD_FN(score_plain)(t, j0, n);
        for (int64_t r = 0; r < t->count; r++) SIMD_FN(soften)(t, r, j0, n);
        SIMD_FN(add_values)(t, j0, n);
    }
    SIMD_FN(end_rows)(t);
}

SIMD_INLINE bool SIMD_FN(all_finite)(const float *x, int64_t n)
{
    float none = 0; /* NaN once there was an infinity or NaN */
    for (int64_t i = 0; i < n; i++) none += x[i] * 0;
    return none == 0;
}

/* Rows are computed together, so that a value that one of them does not see is multiplied by its
 * weight of 0: where that made NaN of an infinite value, the row is computed once more by itself.
 */
SIMD_FUNC void SIMD_FN(attn_block)(const attn_rows *t)
{
    SIMD_FN(attend)(t);
    for (int64_t r = 0; r < t->count; r++) {
        if (!isfinite(t->sum[r]) || SIMD_FN(all_finite)(SIMD_FN(row_y)(t, r), t->a->dv)) continue;
        attn_rows one = *t;
        one.first += r;
        one.count = 1;
        one.seen_only = true;
        one.max = t->max + r;
        one.sum = t->sum + r;
        SIMD_FN(attend)(&one);
    }
}

#undef PANEL
