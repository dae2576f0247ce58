// dV and dK on their way out of the registers that they were summed in.
#pragma once

#include "kernels/sm90/backward/config.h"

namespace flashback::sm90::backward {

// In fp32, straight to its tensor: of the accumulator's rows the thread has `key` and `key` + 8 of the item's
// keys, of each block of eight channels two.
template <int n>
__device__ void store_wide(const Parameters& p, const common::View& view, const float (&gradient)[n],
                           float scale, int key, const Work& work) {
  const int d = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = work.key_row + key + 8 * half;
    if (row >= work.sight.k.count) continue;
    float* const to = static_cast<float*>(view.data) + work.batch * view.batch_stride +
                      (work.sight.k.first + row) * view.row_stride + work.kv_head * view.head_stride + d;
#pragma unroll
    for (int block = 0; block < n / 4; ++block) {
      if (8 * block >= p.head_dim) continue;
      float2* const at = reinterpret_cast<float2*>(to + 8 * block);
      const float* const x = &gradient[4 * block + 2 * half];
      const float2 before = p.accumulate ? *at : float2{0, 0};
      *at = {before.x + scale * x[0], before.y + scale * x[1]};
    }
  }
}

}  // namespace flashback::sm90::backward
