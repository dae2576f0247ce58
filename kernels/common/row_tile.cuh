// How the 256 threads of a small kernel share a tile of 128 rows: eight threads a row, sixteen bytes each, so
// that every access of a warp is of whole 32-byte sectors, in the 16-bit tensors and in the accumulator of dQ
// alike.
#pragma once

#include "kernels/common/parameters.h"

namespace flashback::common {

inline constexpr int kElements = 8;  // 16-bit, of a thread
inline constexpr int kThreadsPerRow = kHeadDim / kElements;
inline constexpr int kRowsAtOnce = kThreads / kThreadsPerRow;

struct RowTile {
  int first_row, head, batch;
  int lane_row, d;  // of this thread, within the rows that are handled at once

  __device__ RowTile()
      : first_row(static_cast<int>(blockIdx.x) * kTileRows),
        head(static_cast<int>(blockIdx.y)),
        batch(static_cast<int>(blockIdx.z)),
        lane_row(static_cast<int>(threadIdx.x) / kThreadsPerRow),
        d(static_cast<int>(threadIdx.x) % kThreadsPerRow * kElements) {}

  // Of the tile's first row in the arrays [batch][head][q_rows_padded].
  __device__ std::int64_t padded_row(int heads, int q_rows_padded) const {
    return (static_cast<std::int64_t>(batch) * heads + head) * q_rows_padded + first_row;
  }
  // This thread's eight elements of a row of the tensor.
  __device__ uint4* elements(const View& view, int row) const {
    return reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(view.data) + batch * view.batch_stride +
                                    row * view.row_stride + head * view.head_stride + d);
  }
};

}  // namespace flashback::common
