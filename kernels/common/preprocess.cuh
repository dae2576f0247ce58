// Before the main kernel: delta and the base-2 logsumexp of each row, and a dQ accumulator of zeros.
#pragma once

#include "kernels/common/row_tile.cuh"
#include "kernels/shared/convert.cuh"

namespace flashback::common {

template <shared::Dtype dtype>
__device__ float dot(std::uint32_t a, std::uint32_t b, float sum) {
  const float2 x = shared::widen<dtype>(a), y = shared::widen<dtype>(b);
  return fmaf(x.y, y.y, fmaf(x.x, y.x, sum));
}

template <shared::Dtype dtype>
__device__ void preprocess(const PreprocessParameters& p) {
  const RowTile tile;
  const std::int64_t padded = tile.padded_row(p.heads, p.q_rows_padded);

  for (int i = 0; i < kTileRows; i += kRowsAtOnce) {
    const int row = i + tile.lane_row;
    float delta = 0;
    if (tile.first_row + row < p.q_rows) {
      const uint4 out = *tile.elements(p.out, tile.first_row + row);
      const uint4 dout = *tile.elements(p.dout, tile.first_row + row);
      delta = dot<dtype>(out.x, dout.x, delta);
      delta = dot<dtype>(out.y, dout.y, delta);
      delta = dot<dtype>(out.z, dout.z, delta);
      delta = dot<dtype>(out.w, dout.w, delta);
    }
    for (int lanes = kThreadsPerRow / 2; lanes > 0; lanes /= 2) {
      delta += __shfl_xor_sync(0xffffffff, delta, lanes);
    }
    if (tile.d == 0) p.delta[padded + row] = delta;
  }

  if (threadIdx.x < kTileRows) {
    const int row = tile.first_row + static_cast<int>(threadIdx.x);
    float lse_log2 = INFINITY;  // P = exp2(S - inf) = 0 past the end
    if (row < p.q_rows) {
      const float lse = p.lse[tile.batch * p.lse_batch_stride + tile.head * p.lse_head_stride + row];
      lse_log2 = lse == -INFINITY ? 0.0f : lse * kLog2e;  // a row that sees no key: every P of it is masked
    }
    p.lse_log2[padded + threadIdx.x] = lse_log2;
  }

  float4* const dq_accum = reinterpret_cast<float4*>(p.dq_accum + padded * kHeadDim);
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kHeadDim / 4; i += kThreads) {
    dq_accum[i] = {0, 0, 0, 0};
  }
}

}  // namespace flashback::common
