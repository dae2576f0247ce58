// Turns on the device: a counter for each query tile says how many key tiles have added to it.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/shared/turns.h"

namespace flashback::shared {

// Waits until `turns` additions have been made; those of this thread follow them.
__device__ inline void wait_turn(const std::int32_t* additions, int turns) {
  ptx::acquire_value(additions, turns);
  ptx::fence_async_global();
}

// This thread's bulk additions have ended, and the next CTA may add.
__device__ inline void pass_turn(std::int32_t* additions) {
  ptx::wait_bulk();
  ptx::fence_async_global();
  ptx::add_release(additions, 1);
}

}  // namespace flashback::shared
