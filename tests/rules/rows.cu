#include "zc/rows.cuh"

// A NaN is larger than all.
static __device__ float larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

// One block a row: its sum and its largest element.
extern "C" __global__ void __launch_bounds__(BLOCK) rows(const TYPE_x *x, TYPE_s *s, TYPE_m *m, int row)
{
    ZC_DYNAMIC_SMEM(raw);
    float *sum = (float *)raw, *most = sum + BLOCK;
    const TYPE_x *at = x + (long long)blockIdx.x * row;
    float a = 0, b = -zc_inf32();
    for (int i = threadIdx.x; i < row; i += BLOCK) {
        a += zc_get(at[i]);
        b = larger(zc_get(at[i]), b);
    }
    sum[threadIdx.x] = a;
    most[threadIdx.x] = b;
    __syncthreads();
    for (int half = BLOCK / 2; half; half /= 2) {
        if ((int)threadIdx.x < half) {
            sum[threadIdx.x] += sum[threadIdx.x + half];
            most[threadIdx.x] = larger(most[threadIdx.x], most[threadIdx.x + half]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        s[blockIdx.x] = zc_put<TYPE_s>(sum[0]);
        m[blockIdx.x] = zc_put<TYPE_m>(most[0]);
    }
}
