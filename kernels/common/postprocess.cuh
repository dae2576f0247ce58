// After the main kernel: a gradient out of the accumulator's private order, scaled, in the type of its
// tensor; and zeros where nothing was in sight.
#pragma once

#include "kernels/common/row_tile.cuh"
#include "kernels/shared/convert.cuh"

namespace flashback::common {

struct Eight {
  float4 a, b;
};

template <shared::Dtype dtype>
__device__ void store(const PostprocessParameters& p, int batch, int row, int head, int d, Eight v) {
  if (!p.fp32) {
    *reinterpret_cast<uint4*>(element<std::uint16_t>(p.gradient, batch, row, head, d)) = {
        shared::narrow<dtype>(v.a.x, v.a.y), shared::narrow<dtype>(v.a.z, v.a.w),
        shared::narrow<dtype>(v.b.x, v.b.y), shared::narrow<dtype>(v.b.z, v.b.w)};
    return;
  }
  float4* const to = reinterpret_cast<float4*>(element<float>(p.gradient, batch, row, head, d));
  if (p.accumulate) {
    const float4 a = to[0], b = to[1];
    v = {{a.x + v.a.x, a.y + v.a.y, a.z + v.a.z, a.w + v.a.w},
         {b.x + v.b.x, b.y + v.b.y, b.z + v.b.z, b.w + v.b.w}};
  }
  to[0] = v.a;
  to[1] = v.b;
}

template <int head_dim, class Layout, shared::Dtype dtype>
__device__ void postprocess(const PostprocessParameters& p) {
  const shared::Side& side = p.of_keys ? p.sequences.k : p.sequences.q;
  const int tiles = shared::tiles_of(side.rows, kPostprocessRows), head = static_cast<int>(blockIdx.y);
  const int in_batch = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const Lane<head_dim> lane;

  for (int i = 0; i < kPostprocessRows; i += lane.kRowsAtOnce) {
    const int row = tile * kPostprocessRows + i + lane.row;
    if (row >= side.rows || lane.d >= p.head_dim) continue;

    const shared::Place owner =
        side.cu_seqlens ? shared::owner_of(side, p.sequences.batch, row) : shared::Place{in_batch, row};
    bool takes_part = false;
    int in_sight = -1;  // which of the rows in sight it is
    if (owner.batch >= 0) {
      takes_part = owner.tile < shared::rows_of(side, owner.batch).count;
      const shared::Sight sight = shared::sight_of(p.sequences, owner.batch);
      const shared::Rows& rows = p.of_keys ? sight.k : sight.q;
      if (row >= rows.first && row < rows.first + rows.count) in_sight = row - rows.first;
    }

    if (in_sight < 0) {
      const bool leave = p.accumulate || (!takes_part && p.leave_unused_rows);
      if (!leave) store<dtype>(p, in_batch, row, head, lane.d, {});
    } else if (p.accum) {
      const std::int64_t number = std::int64_t{head} * side.all_tiles +
                                  shared::first_tile_of(side, owner.batch) + in_sight / Layout::kRows;
      const float* const from = p.accum + number * Layout::kRows * head_dim;
      const auto four = [&](int d) {
        const float4 v = Layout::four(from, in_sight % Layout::kRows, d);
        return float4{p.scale * v.x, p.scale * v.y, p.scale * v.z, p.scale * v.w};
      };
      store<dtype>(p, in_batch, row, head, lane.d, {four(lane.d), four(lane.d + 4)});
    }
  }
}

}  // namespace flashback::common
