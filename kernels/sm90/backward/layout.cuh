// How the small kernels find the rows of this kernel in the workspace.
#pragma once

#include "kernels/sm90/backward/config.h"

namespace flashback::sm90::backward {

struct Layout {
  static constexpr int kRows = kQueryRows, kKeyTileRows = kKeyRows;
  static constexpr int kStatsFloats = backward::kStatsFloats;

  static constexpr int stats_offset(int row) { return stats_position(row); }
  __device__ static float4 four(const float* tile, int row, int d) {
    const float2 a = *reinterpret_cast<const float2*>(tile + dq_position(row, d));
    const float2 b = *reinterpret_cast<const float2*>(tile + dq_position(row, d + 2));
    return {a.x, a.y, b.x, b.y};
  }
};

}  // namespace flashback::sm90::backward
