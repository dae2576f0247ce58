// mbarrier: a phase ends when all expected arrivals and all expected bytes are in. Every form acquires or
// releases at CTA scope, the default.
#pragma once

#include "kernels/ptx/barrier.h"
#include "kernels/ptx/memory.cuh"

namespace flashback::ptx {

__device__ inline void initialise(Barrier& barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals)
               : "memory");
}

template <int n>
__device__ void initialise(Barrier (&barriers)[n], std::uint32_t arrivals) {
  for (Barrier& barrier : barriers) initialise(barrier, arrivals);
}

// Makes initialised barriers known to the asynchronous units.
__device__ inline void fence_initialised_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

// One arrival, and `bytes` more to come from asynchronous copies before the phase ends.
__device__ inline void arrive_and_expect(Barrier& barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}

// Returns once the phase of this parity has ended. A fresh barrier counts as having ended a phase of
// parity 1.
__device__ inline void wait(Barrier& barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

}  // namespace flashback::ptx
