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

// The packed sequences that rows from `row` on may belong to, so many: whose the first one and the last one
// are. Looked up once by two threads.
template <int rows>
__device__ shared::Candidates owners_of_tile(const shared::Side& side, int batches, int row) {
  __shared__ int owners[2];
  if (threadIdx.x < 2)
    owners[threadIdx.x] = shared::owner_of(side, batches, row + (threadIdx.x == 0 ? 0 : rows - 1)).batch;
  __syncthreads();
  return {max(owners[0], 0), owners[1] < 0 ? batches : owners[1] + 1};
}

template <int head_dim, class Layout, shared::Dtype dtype>
__device__ void postprocess(const PostprocessParameters& p) {
  const shared::Side& side = p.of_keys ? p.sequences.k : p.sequences.q;
  const int tiles = shared::tiles_of(side.rows, kPostprocessRows), head = static_cast<int>(blockIdx.y);
  const int in_batch = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const Lane<head_dim> lane;
  shared::Candidates owners = {};
  if (side.cu_seqlens)
    owners = owners_of_tile<kPostprocessRows>(side, p.sequences.batch, tile * kPostprocessRows);

  int batch = -1;              // the sequence of the row before, and of it
  shared::Rows in_sight = {};  //   the rows in sight
  std::int64_t first_tile = 0;
  for (int i = 0; i < kPostprocessRows; i += lane.kRowsAtOnce) {
    const int row = tile * kPostprocessRows + i + lane.row;
    if (row >= side.rows || lane.d >= p.head_dim) continue;

    const int owner =
        side.cu_seqlens ? shared::owner_of(side, p.sequences.batch, row, owners).batch : in_batch;
    if (owner >= 0 && owner != batch) {
      const shared::Sight sight = shared::sight_of(p.sequences, owner);
      in_sight = p.of_keys ? sight.k : sight.q;
      const std::int64_t number = std::int64_t{head} * side.all_tiles + shared::first_tile_of(side, owner);
      first_tile = p.of_keys ? number * (Layout::kKeyTileRows / Layout::kRows) : number;
      batch = owner;
    }

    const int at = row - in_sight.first;
    if (owner < 0 || at < 0 || at >= in_sight.count) {
      const auto takes_part = [&] {
        if (owner < 0) return false;
        const shared::Rows rows = shared::rows_of(side, owner);
        return row < rows.first + rows.count;
      };
      if (!p.accumulate && !(p.leave_unused_rows && !takes_part()))
        store<dtype>(p, in_batch, row, head, lane.d, {});
    } else if (p.accum) {
      const float* const from = p.accum + (first_tile + at / Layout::kRows) * Layout::kRows * head_dim;
      const auto four = [&](int d) {
        const float4 v = Layout::four(from, at % Layout::kRows, d);
        return float4{p.scale * v.x, p.scale * v.y, p.scale * v.z, p.scale * v.w};
      };
      store<dtype>(p, in_batch, row, head, lane.d, {four(lane.d), four(lane.d + 4)});
    }
  }
}

}  // namespace flashback::common
