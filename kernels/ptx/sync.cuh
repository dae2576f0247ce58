// Warps among themselves: election, named barriers, the generic-to-async proxy fence, registers.
#pragma once

#include <cstdint>

namespace flashback::ptx {

// True in one lane of the (converged) warp, always the same.
__device__ inline bool elect() {
  std::uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, one;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

// Waits for `threads` threads, whole warps, at the hardware barrier `id`; orders their memory accesses.
template <int id, int threads>
__device__ inline void sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(threads) : "memory");
}

// The same with an id that only the running warp knows.
template <int threads>
__device__ inline void sync(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

// Counts towards what others wait for there, and goes on.
template <int threads>
__device__ inline void arrive(int id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

// What this thread wrote to shared memory becomes visible to asynchronous units, once they are told.
__device__ inline void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Orders this thread's accesses to global memory before it with those of asynchronous units after it, and the
// other way round.
__device__ inline void fence_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// A warpgroup's share of the register file, in registers a thread.
template <int registers>
__device__ inline void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ inline void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

// threadIdx.x, read again by every call: the compiler holds nothing that it computes from an earlier one.
__device__ inline int thread_read_anew() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

}  // namespace flashback::ptx
