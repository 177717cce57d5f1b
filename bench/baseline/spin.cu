// A softmax of short rows that first does TURNS dependent multiply-adds: a kernel as slow as one wants it.
extern "C" __global__ void spin(const TYPE_x *x, TYPE_y *y, long long rows, long long row)
{
    long long first = ((long long)blockIdx.x * BLOCK + threadIdx.x) * row;
    if (first >= rows * row) return;
    float waste = zc_get(x[first]);
    for (int i = 0; i < TURNS; i++) waste = waste * 0.999f + 1e-3f;
    float most = zc_get(x[first]), sum = 0;
    for (long long i = 1; i < row; i++) most = fmaxf(most, zc_get(x[first + i]));
    if (most < -3.40282347e38f) most = 0; // minus infinity: zc's Softmax gives such a row zeros
    for (long long i = 0; i < row; i++) sum += expf(zc_get(x[first + i]) - most);
    if (sum == 0 || waste == -12345.f) sum = 1;
    for (long long i = 0; i < row; i++) y[first + i] = zc_put<TYPE_y>(expf(zc_get(x[first + i]) - most) / sum);
}
