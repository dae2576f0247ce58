// After the main kernel: dQ out of the accumulator's private order, scaled, in 16 bit.
#pragma once

#include "kernels/common/row_tile.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/shared/dq_order.h"

namespace flashback::common {

template <shared::Dtype dtype>
__device__ void postprocess(const PostprocessParameters& p) {
  static_assert(shared::kDqTileRows == kTileRows);
  const RowTile tile;
  const float* const dq_accum = p.dq_accum + tile.padded_row(p.heads, p.q_rows_padded) * kHeadDim;

  for (int i = 0; i < kTileRows; i += kRowsAtOnce) {
    const int row = i + tile.lane_row;
    if (tile.first_row + row >= p.q_rows) continue;
    const float4 a = *reinterpret_cast<const float4*>(dq_accum + shared::dq_offset(row, tile.d));
    const float4 b = *reinterpret_cast<const float4*>(dq_accum + shared::dq_offset(row, tile.d + 4));
    *tile.elements(p.dq, tile.first_row + row) = {shared::narrow<dtype>(p.scale * a.x, p.scale * a.y),
                                                  shared::narrow<dtype>(p.scale * a.z, p.scale * a.w),
                                                  shared::narrow<dtype>(p.scale * b.x, p.scale * b.y),
                                                  shared::narrow<dtype>(p.scale * b.z, p.scale * b.w)};
  }
}

}  // namespace flashback::common
