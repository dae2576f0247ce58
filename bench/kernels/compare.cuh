// How far two gradients lie apart, block by block: a whole tensor of the largest case would take longer to
// download than to compute.
#pragma once

#include "bench/kernels/parameters.h"
#include "kernels/shared/convert.cuh"

namespace flashback::bench {

inline constexpr int kElements = 8;  // of sixteen bytes, what a thread takes at once

__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffff, value, lanes);
  return value;
}

template <shared::Dtype dtype>
__device__ void compare(const CompareParameters& p) {
  const int threads_per_row = p.channels / kElements;
  const int part = static_cast<int>(threadIdx.x) % threads_per_row * kElements;
  const auto chunk = [&](const common::View& view, int row) {
    return *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(view.data) +
                                           blockIdx.z * view.batch_stride + row * view.row_stride +
                                           blockIdx.y * view.head_stride + part);
  };
  float difference = 0, size = 0;
  for (int i = static_cast<int>(threadIdx.x) / threads_per_row; i < kBlockRows;
       i += kThreads / threads_per_row) {
    const int row = static_cast<int>(blockIdx.x) * kBlockRows + i;
    if (row >= p.rows) break;
    const uint4 a = chunk(p.a, row), b = chunk(p.b, row);
    const std::uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 u = shared::widen<dtype>(x[j]), v = shared::widen<dtype>(y[j]);
      difference = fmaf(u.x - v.x, u.x - v.x, fmaf(u.y - v.y, u.y - v.y, difference));
      size = fmaf(v.x, v.x, fmaf(v.y, v.y, size));
    }
  }
  __shared__ float of_warp[2][kThreads / 32];
  difference = sum_of_warp(difference);
  size = sum_of_warp(size);
  if (threadIdx.x % 32 == 0) {
    of_warp[0][threadIdx.x / 32] = difference;
    of_warp[1][threadIdx.x / 32] = size;
  }
  __syncthreads();
  if (threadIdx.x >= 2) return;
  float sum = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += of_warp[threadIdx.x][warp];
  const std::uint64_t block = (std::uint64_t{blockIdx.z} * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  p.sums[2 * block + threadIdx.x] = sum;
}

}  // namespace flashback::bench
