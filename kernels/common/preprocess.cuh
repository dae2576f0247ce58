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

// The sum over the first `rows` threads, in an order that does not vary; known to thread 0.
template <int rows>
__device__ float sum_over_rows(float value, float (&of_warps)[rows / 32]) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffff, value, lanes);
  if (threadIdx.x % 32 == 0 && threadIdx.x < rows) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (const float of_warp : of_warps) sum += of_warp;
  return sum;
}

template <int head_dim, class Layout, shared::Dtype dtype>
__device__ void preprocess(const PreprocessParameters& p) {
  if (p.zero && blockIdx.x + blockIdx.y + threadIdx.x == 0) *p.zero = 0;
  constexpr int kRows = Layout::kRows;
  __shared__ float product[kRows], of_warps[kRows / 32];
  const shared::Side& side = p.sequences.q;
  const int number = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const shared::Place place = shared::place_of(side, p.sequences.batch, number);
  if (place.batch < 0) return;
  const shared::Rows rows = shared::sight_of(p.sequences, place.batch).q;
  const std::int64_t tile = std::int64_t{head} * side.all_tiles + number;
  const int first_row = place.tile * kRows;
  const Lane<head_dim> lane;

  for (int i = 0; i < kRows; i += lane.kRowsAtOnce) {
    const int row = first_row + i + lane.row;
    float sum = 0;
    if (row < rows.count && lane.d < p.head_dim) {
      const auto of = [&](const View& view) {
        return *reinterpret_cast<const uint4*>(
            element<std::uint16_t>(view, place.batch, rows.first + row, head, lane.d));
      };
      const uint4 out = of(p.out), dout = of(p.dout);
      sum = dot<dtype>(out.x, dout.x, sum);
      sum = dot<dtype>(out.y, dout.y, sum);
      sum = dot<dtype>(out.z, dout.z, sum);
      sum = dot<dtype>(out.w, dout.w, sum);
    }
    for (int lanes = lane.kThreadsPerRow / 2; lanes > 0; lanes /= 2)
      sum += __shfl_xor_sync(0xffffffff, sum, lanes);
    if (lane.d == 0) product[i + lane.row] = sum;
  }
  __syncthreads();

  float dsink = 0;
  if (threadIdx.x < kRows) {
    const int row = first_row + static_cast<int>(threadIdx.x);
    float lse_log2 = INFINITY, delta = 0;
    if (row < rows.count) {
      const float lse = of_row(p.lse, place.batch, rows.first + row, head);
      const float dlse = p.dlse.data ? of_row(p.dlse, place.batch, rows.first + row, head) : 0.0f;
      if (!isinf(lse)) {
        lse_log2 = lse * kLog2e;
        delta = product[threadIdx.x] - dlse;
      }
      if (p.sink) dsink = -sink_weight(p.sink[head], lse) * (isinf(lse) ? -dlse : delta);
    }
    const std::int64_t at = tile * Layout::kStatsFloats + Layout::stats_offset(static_cast<int>(threadIdx.x));
    p.lse_log2[at] = lse_log2;
    p.delta[at] = delta;
  }
  if (p.sink) {
    dsink = sum_over_rows<kRows>(dsink, of_warps);
    if (threadIdx.x == 0) p.dsink_parts[tile] = dsink;
  }

  float4* const dq_accum = reinterpret_cast<float4*>(p.dq_accum + tile * kRows * head_dim);
  for (int i = static_cast<int>(threadIdx.x); i < kRows * head_dim / 4; i += kThreads) {
    dq_accum[i] = {0, 0, 0, 0};
  }
}

}  // namespace flashback::common
