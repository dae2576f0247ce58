// Before everything else where sequences differ: how many tiles there are before each of them, so that any
// CTA finds its work by bisection and none is started for tiles that do not exist, a few at the end excepted.
#pragma once

#include "kernels/common/parameters.h"

namespace flashback::common {

// The sum over the threads before this one, and over all.
struct Sums {
  int before, all;
};
__device__ inline Sums sum_over_threads(int value, int (&of_warps)[32]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int inclusive = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(0xffffffff, inclusive, step);
    if (lane >= step) inclusive += below;
  }
  if (lane == 31) of_warps[warp] = inclusive;
  __syncthreads();
  Sums sums = {inclusive - value, 0};
  for (int w = 0; w < kScheduleThreads / 32; ++w) {
    if (w < warp) sums.before += of_warps[w];
    sums.all += of_warps[w];
  }
  __syncthreads();
  return sums;
}

__device__ inline void schedule(const ScheduleParameters& p) {
  __shared__ int of_warps[32];
  int q_tiles = 0, k_tiles = 0;  // of the sequences before this round's
  for (int first = 0; first < p.sequences.batch; first += kScheduleThreads) {
    const int batch = first + static_cast<int>(threadIdx.x);
    shared::Sight sight = {};
    if (batch < p.sequences.batch) sight = shared::sight_of(p.sequences, batch);
    const Sums q = sum_over_threads(shared::tiles_of(sight.q.count, p.q_tile_rows), of_warps);
    const Sums k = sum_over_threads(shared::tiles_of(sight.k.count, p.k_tile_rows), of_warps);
    if (batch < p.sequences.batch) {
      p.q_first_tile[batch] = q_tiles + q.before;
      p.k_first_tile[batch] = k_tiles + k.before;
    }
    q_tiles += q.all;
    k_tiles += k.all;
  }
  if (threadIdx.x == 0) {
    p.q_first_tile[p.sequences.batch] = q_tiles;
    p.k_first_tile[p.sequences.batch] = k_tiles;
  }
}

}  // namespace flashback::common
