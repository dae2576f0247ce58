// Contiguous asynchronous copies, and the groups in which a thread waits for its own stores.
#pragma once

#include "kernels/ptx/mbarrier.cuh"

namespace flashback::ptx {

__device__ inline void load_bulk(void* to, const void* from, std::uint32_t bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}

// Adds floats of shared memory to global memory, each one atomically.
__device__ inline void add_bulk(float* to, std::uint32_t from, std::uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(from), "r"(bytes)
               : "memory");
}
__device__ inline void add_bulk(float* to, const void* from, std::uint32_t bytes) {
  add_bulk(to, shared_address(from), bytes);
}

__device__ inline void commit_bulk_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// All but the thread's `pending` youngest groups have read their shared memory, which may be written again.
template <int pending>
__device__ inline void wait_bulk_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// All of the thread's groups have ended, their writes included.
__device__ inline void wait_bulk() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace flashback::ptx
