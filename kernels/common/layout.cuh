// How the small kernels find a tile of rows in the workspace, where a main kernel has its own order. A layout
// says how many rows a tile has, where the statistics of a row stand and where four elements of its dQ do. A
// tile of keys is one tile, or several side by side.
#pragma once

#include "kernels/shared/dq_order.h"

namespace flashback::common {

// Statistics row after row; accumulators in the order of dq_order.h.
struct PlainLayout {
  static constexpr int kRows = shared::kDqTileRows, kKeyTileRows = kRows;
  static constexpr int kStatsFloats = kRows;  // from tile to tile

  static constexpr int stats_offset(int row) { return row; }
  // Elements d .. d + 3 (d a multiple of four) of a row.
  __device__ static float4 four(const float* tile, int row, int d) {
    return *reinterpret_cast<const float4*>(tile + shared::dq_offset(row, d));
  }
};

}  // namespace flashback::common
