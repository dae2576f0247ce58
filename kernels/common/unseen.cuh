// In the forward pass, beside the main kernel: rows of out and lse that no CTA of it writes.
#pragma once

#include "kernels/common/row_tile.cuh"

namespace flashback::common {

__device__ inline void unseen(const UnseenParameters& p) {
  const shared::Side& side = p.sequences.q;
  const int tiles = shared::tiles_of(side.rows, kUnseenRows), head = static_cast<int>(blockIdx.y);
  const int in_batch = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const Lane<64> lane;  // further channels in turn

  for (int i = 0; i < kUnseenRows; i += lane.kRowsAtOnce) {
    const int row = tile * kUnseenRows + i + lane.row;
    if (row >= side.rows) continue;
    const shared::Place owner =
        side.cu_seqlens ? shared::owner_of(side, p.sequences.batch, row) : shared::Place{in_batch, row};
    bool takes_part = false;
    if (owner.batch >= 0) {
      takes_part = owner.tile < shared::rows_of(side, owner.batch).count;
      const shared::Rows rows = shared::sight_of(p.sequences, owner.batch).q;
      if (row >= rows.first && row < rows.first + rows.count) continue;
    }
    if (!takes_part && p.leave_unused_rows) continue;
    for (int d = lane.d; d < p.head_dim; d += 64)
      *reinterpret_cast<uint4*>(element<std::uint16_t>(p.out, in_batch, row, head, d)) = {0, 0, 0, 0};
    if (p.lse.data && lane.d == 0) {
      p.lse.data[in_batch * p.lse.batch_stride + head * p.lse.head_stride + row] =
          takes_part && p.sink ? p.sink[head] : -INFINITY;
    }
  }
}

}  // namespace flashback::common
