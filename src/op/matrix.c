#include "op/matrix.h"

zc_matrix zc_matrix_of(const zc_tensor *t, bool left, bool trans, bool trans_batch)
{
    int64_t s[ZC_MAX_RANK];
    zc_matrix m = {.rows = 1, .cols = 1};
    zc_strides(t, s);
    if (t->rank <= 1) {
        *(left ? &m.cols : &m.rows) = t->rank ? t->dims[0] : 1;
        *(left ? &m.col : &m.row) = 1;
        return m;
    }
    int row = trans_batch ? 0 : t->rank - 2, col = t->rank - 1;
    for (int d = 0; d < t->rank - 1; d++) {
        if (d == row) continue;
        m.batch_dims[m.batch_rank] = t->dims[d];
        m.batch_strides[m.batch_rank++] = s[d];
    }
    int r = trans ? col : row, c = trans ? row : col;
    m.rows = t->dims[r];
    m.row = s[r];
    m.cols = t->dims[c];
    m.col = s[c];
    return m;
}

zc_matrix zc_matrix_flat(const zc_tensor *t)
{
    int64_t depth = t->dims[t->rank - 1], rows = zc_dims_span(t->dims, 0, t->rank - 1);
    if (rows < 0) rows = 0; /* overflows only where another axis is 0 */
    return (zc_matrix){.rows = rows, .cols = depth, .row = depth, .col = 1};
}

bool zc_matrix_batch(const zc_matrix *m, int rank, const int64_t *dims, int64_t *strides)
{
    int shift = rank - m->batch_rank;
    for (int d = 0; d < rank; d++) {
        int64_t have = d < shift ? 1 : m->batch_dims[d - shift];
        if (have != 1 && have != dims[d]) return false;
        strides[d] = have == 1 ? 0 : m->batch_strides[d - shift];
    }
    return shift >= 0;
}
