// Before the main kernel: delta and the base-2 logsumexp of each row, in the order that the main kernel
// reads; and zeros.
#pragma once

#include "kernels/shared/convert.cuh"
#include "kernels/sm90/backward/config.h"

namespace flashback::sm90::backward {

inline constexpr int kStatsThreadsPerRow = kStatsThreads / kQueryRows;  // each with 16 channels

// Of the CTA's query tile, in arrays [batch][head][q_tiles].
__device__ inline std::int64_t tile_of_all() {
  return (static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

template <Dtype dtype>
__device__ void compute_stats(const StatsParameters& p) {
  const int tile = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y),
            batch = static_cast<int>(blockIdx.z);
  const int row_in_tile = static_cast<int>(threadIdx.x) / kStatsThreadsPerRow;
  const int row = tile * kQueryRows + row_in_tile, part = static_cast<int>(threadIdx.x) % kStatsThreadsPerRow;

  float delta = 0;
  if (row < p.q_rows) {
    // Chunks of 16 bytes, neighbours in neighbouring threads.
    const auto chunks = [&](const common::View& view) {
      return reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(view.data) +
                                            batch * view.batch_stride + row * view.row_stride +
                                            head * view.head_stride) +
             part;
    };
    const uint4* const out = chunks(p.out);
    const uint4* const dout = chunks(p.dout);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 a = out[i * kStatsThreadsPerRow], b = dout[i * kStatsThreadsPerRow];
      const std::uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 u = shared::widen<dtype>(x[j]), v = shared::widen<dtype>(y[j]);
        delta = fmaf(u.y, v.y, fmaf(u.x, v.x, delta));
      }
    }
  }
#pragma unroll
  for (int lanes = kStatsThreadsPerRow / 2; lanes > 0; lanes /= 2)
    delta += __shfl_xor_sync(0xffffffff, delta, lanes);

  if (part == 0) {
    float lse_log2 = INFINITY;  // past the end P = exp2(S - inf) = 0
    if (row < p.q_rows) {
      const float lse = p.lse[batch * p.lse_batch_stride + head * p.lse_head_stride + row];
      lse_log2 =
          lse == -INFINITY ? 0.0f : lse * common::kLog2e;  // a row that sees no key: every P of it is masked
    }
    float* const stats = p.stats + tile_of_all() * kStatsFloats;
    stats[stats_position(row_in_tile)] = lse_log2;
    stats[kQueryRows + stats_position(row_in_tile)] = delta;
  }

  float4* const accum = reinterpret_cast<float4*>(p.dq_accum + tile_of_all() * kDqFloats);
#pragma unroll
  for (int i = 0; i < kDqFloats / 4; i += kStatsThreads) accum[i + threadIdx.x] = {0, 0, 0, 0};
  if (tile_of_all() == 0 && threadIdx.x == 0) *p.next_ticket = 0;
}

// A thread makes sixteen bytes of two rows, r and r + 8: from eight consecutive words of four registers'
// worth.
template <Dtype dtype>
__device__ void convert(const ConvertParameters& p) {
  const float* const accum = p.dq_accum + tile_of_all() * kDqFloats;
  const int row = static_cast<int>(threadIdx.x) / 64 * 16 + static_cast<int>(threadIdx.x) / 8 % 8,
            d = static_cast<int>(threadIdx.x) % 8 * 8;
  const float4* const from = reinterpret_cast<const float4*>(accum + dq_position(row, d));
  std::uint32_t low[4], high[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 v = from[i];
    low[i] = shared::narrow<dtype>(p.scale * v.x, p.scale * v.y);
    high[i] = shared::narrow<dtype>(p.scale * v.z, p.scale * v.w);
  }
  const int first_row = static_cast<int>(blockIdx.x) * kQueryRows + row;
  std::uint16_t* const to = static_cast<std::uint16_t*>(p.dq.data) + blockIdx.z * p.dq.batch_stride +
                            blockIdx.y * p.dq.head_stride + d;
  if (first_row < p.q_rows)
    *reinterpret_cast<uint4*>(to + first_row * p.dq.row_stride) = {low[0], low[1], low[2], low[3]};
  if (first_row + 8 < p.q_rows) {
    *reinterpret_cast<uint4*>(to + (first_row + 8) * p.dq.row_stride) = {high[0], high[1], high[2], high[3]};
  }
}

}  // namespace flashback::sm90::backward
