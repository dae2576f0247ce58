// Work that one thread of a persistent CTA finds and all roles read: a ring in shared memory.
#pragma once

#include "kernels/ptx/mbarrier.cuh"
#include "kernels/tile/ring.h"

namespace flashback::shared {

// The published work, as one warp sees it: each one until the next. `SharedMemory` has the ring `work` and
// its barriers work_full and work_empty.
template <class SharedMemory>
struct WorkReader {
  static constexpr int kStages = sizeof(SharedMemory::work) / sizeof(SharedMemory::work[0]);

  SharedMemory& sm;
  tile::RingPosition<kStages> at;
  int held = -1;  // its stage

  __device__ explicit WorkReader(SharedMemory& shared) : sm(shared) {}
  __device__ const auto& next() {
    __syncwarp();
    if (held >= 0 && threadIdx.x % 32 == 0) arrive(sm.work_empty[held]);
    wait(sm.work_full[at.slot], at.full());
    held = at.slot;
    at.advance();
    return sm.work[held];
  }
};

}  // namespace flashback::shared
