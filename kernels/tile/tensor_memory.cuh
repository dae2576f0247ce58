// A CTA's tensor memory: all of it, from the start of the kernel to its end.
#pragma once

#include "kernels/ptx/tcgen05.cuh"
#include "kernels/tile/columns.h"

namespace flashback::tile {

// The whole CTA, which goes on when `sm` is initialised too. One warp is the owner. The address of column 0.
template <class SharedMemory>
__device__ std::uint32_t take_tensor_memory(bool owner, SharedMemory& sm) {
  if (owner) {
    ptx::allocate_tensor_memory<kTensorMemoryColumns>(sm.tensor_memory);
    ptx::relinquish_tensor_memory();
    ptx::fence_before_sync();
  }
  __syncthreads();
  ptx::fence_after_sync();
  return sm.tensor_memory;
}

// The whole CTA, when it has no more to do.
__device__ inline void return_tensor_memory(bool owner, std::uint32_t tensor_memory) {
  __syncwarp();
  ptx::fence_before_sync();
  __syncthreads();
  if (owner) {
    ptx::fence_after_sync();
    ptx::free_tensor_memory<kTensorMemoryColumns>(tensor_memory);
  }
}

}  // namespace flashback::tile
