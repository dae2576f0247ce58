// How the 256 threads of a small kernel share a tile of 128 rows: eight threads a row, eight elements each,
// so that every access of a warp is of whole 32-byte sectors, in the tensors and in the accumulators alike.
#pragma once

#include "kernels/common/parameters.h"

namespace flashback::common {

inline constexpr int kElements = 8;  // of a thread

// This thread's place among the rows that are handled at once.
template <int head_dim>
struct Lane {
  static constexpr int kThreadsPerRow = head_dim / kElements, kRowsAtOnce = kThreads / kThreadsPerRow;

  int row, d;

  __device__ Lane()
      : row(static_cast<int>(threadIdx.x) / kThreadsPerRow),
        d(static_cast<int>(threadIdx.x) % kThreadsPerRow * kElements) {}
};

template <class Element>
__device__ Element* element(const View& view, int batch, std::int64_t row, int head, int d) {
  return static_cast<Element*>(view.data) + batch * view.batch_stride + row * view.row_stride +
         head * view.head_stride + d;
}

__device__ inline float of_row(const RowView& view, int batch, std::int64_t row, int head) {
  return view.data[batch * view.batch_stride + head * view.head_stride + row];
}

// The weight of the sink in a row. An infinite lse says that the row sees no key: the sink takes all.
__device__ inline float sink_weight(float sink, float lse) {
  return isinf(lse) ? 1.0f : exp2f((sink - lse) * kLog2e);
}

}  // namespace flashback::common
