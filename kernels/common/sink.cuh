// After preprocess: the gradient of a head's sink, summed in an order that does not vary.
#pragma once

#include "kernels/common/row_tile.cuh"

namespace flashback::common {

__device__ inline void sum_sink(const SinkParameters& p) {
  __shared__ float of_threads[kThreads];
  const shared::Sequences& s = p.sequences;
  const int head = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  float sum = 0;

  const std::int64_t tiles = shared::first_tile_of(s.q, s.batch);
  for (std::int64_t i = thread; i < tiles; i += kThreads)
    sum += p.dsink_parts[std::int64_t{head} * s.q.all_tiles + i];

  // Rows out of sight have no key, so that their out is zero and dlse is all that their delta has.
  if (p.dlse.data) {
    for (int batch = thread; batch < s.batch; batch += kThreads) {
      const shared::Rows all = shared::rows_of(s.q, batch), seen = shared::sight_of(s, batch).q;
      for (int row = all.first; row < all.first + all.count - seen.count; ++row) {
        sum += sink_weight(p.sink[head], of_row(p.lse, batch, row, head)) * of_row(p.dlse, batch, row, head);
      }
    }
  }

  of_threads[thread] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) of_threads[thread] += of_threads[thread + half];
  }
  if (thread == 0) p.dsink[head] = of_threads[0];
}

}  // namespace flashback::common
