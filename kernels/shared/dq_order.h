// The order of the fp32 accumulator of dQ, known to the kernels alone: tiles of 128 rows one after another,
// in each the row's next four elements 128 rows apart. So a warp that holds one row a thread writes 512
// contiguous bytes at a time, and every 32 columns of a tile are one contiguous piece for a bulk copy.
#pragma once

namespace flashback::shared {

inline constexpr int kDqTileRows = 128;

// Floats from the start of the tile to the four elements d .. d + 3 (d a multiple of four) of a row.
constexpr int dq_offset(int row, int d) {
  return (d / 4 * kDqTileRows + row) * 4;
}

}  // namespace flashback::shared
