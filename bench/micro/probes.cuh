// Probes: kernels that do one thing n times. The host times n and 2 n repetitions, and takes the difference
// for so many operations; a chain of dependent additions, four cycles each, is the clock.
//
// Every result depends on every operation, so that the assembler keeps them all.
#pragma once

#include "bench/micro/parameters.h"
#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/sync.cuh"

namespace flashback::micro {

struct alignas(1024) Buffer {
  std::uint8_t bytes[kCopyBytes];
};
extern __shared__ Buffer buffers[];  // as many as the launch asks for

__device__ inline void report(const Parameters& p, std::uint32_t value) {
  p.out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

// Dependent additions: the unit. So many that the loop around them does not count.
__device__ inline void chain(const Parameters& p) {
  float x = static_cast<float>(threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
#pragma unroll
    for (int j = 0; j < kChained; ++j) asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(1.0f));
  }
  report(p, static_cast<std::uint32_t>(x) - threadIdx.x);
}

// Sixteen chains side by side of an operation that takes a word and gives one.
template <class Operation>
__device__ inline void chains(const Parameters& p, Operation operation) {
  std::uint32_t x[kUnrolled];
#pragma unroll
  for (int j = 0; j < kUnrolled; ++j) x[j] = 0x3f800000 + static_cast<std::uint32_t>(j) + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
#pragma unroll
    for (int j = 0; j < kRounds * kUnrolled; ++j) x[j % kUnrolled] = operation(x[j % kUnrolled]);
  }
  std::uint32_t all = 0;
#pragma unroll
  for (int j = 0; j < kUnrolled; ++j) all |= x[j];
  report(p, all | 1);
}

__device__ inline std::uint32_t convert(std::uint32_t x) {
  std::uint32_t y;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
  return y;
}

__device__ inline std::uint32_t exponential(std::uint32_t x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(__uint_as_float(x)));
  return __float_as_uint(y);
}

__device__ inline std::uint32_t shuffle(std::uint32_t x) {
  return __shfl_xor_sync(0xffffffff, x, 1);
}

// Sixteen loads of 16 bytes; `stride` 0: all lanes the same, a broadcast; 16: each its own.
template <int stride>
__device__ inline void loads(const Parameters& p) {
  __shared__ alignas(128) float memory[4096];
  for (int i = static_cast<int>(threadIdx.x); i < 4096; i += static_cast<int>(blockDim.x)) memory[i] = 1;
  __syncthreads();
  const std::uint32_t from = ptx::shared_address(memory) + threadIdx.x % 32 * stride;
  float4 sum = {};
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
    float4 v[kUnrolled];
#pragma unroll
    for (int j = 0; j < kUnrolled; ++j) ptx::load_shared(v[j], from + static_cast<std::uint32_t>(j) * 512);
#pragma unroll
    for (int j = 0; j < kUnrolled; ++j) {  // all four words: a load of fewer would be another one
      sum.x += v[j].x;
      sum.y += v[j].y;
      sum.z += v[j].z;
      sum.w += v[j].w;
    }
  }
  report(p, static_cast<std::uint32_t>(sum.x + sum.y + sum.z + sum.w));
}

// Named barriers of the whole CTA.
__device__ inline void meetings(const Parameters& p) {
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
#pragma unroll
    for (int j = 0; j < kUnrolled; ++j) asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory");
  }
  report(p, 1);
}

// Two warps hand a token to and fro: each repetition is two arrivals and two waits.
__device__ inline void token(const Parameters& p) {
  __shared__ ptx::Barrier barriers[2];
  if (threadIdx.x == 0) {
    initialise(barriers, 1);
    ptx::fence_initialised_barriers();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
    if (warp == 1) wait(barriers[0], i & 1);
    if (threadIdx.x % 32 == 0) arrive(barriers[warp]);
    __syncwarp();
    if (warp == 0) wait(barriers[1], i & 1);
  }
  report(p, 1);
}

// A store to shared memory and the fence behind it.
__device__ inline void fences(const Parameters& p) {
  __shared__ alignas(16) float memory[4 * 128];
  const std::uint32_t to = ptx::shared_address(memory) + threadIdx.x * 16;
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
#pragma unroll
    for (int j = 0; j < kUnrolled; ++j) {
      ptx::store_shared(to, 1.0f, 2.0f, 3.0f, 4.0f);
      ptx::fence_async_shared();
    }
  }
  report(p, 1);
}

// Copies of 16 KB from L2, `depth` in flight: one alone is the latency, several on every SM the load.
template <int depth>
__device__ inline void copies(const Parameters& p) {
  __shared__ ptx::Barrier full[depth];
  if (threadIdx.x != 0) return;
  initialise(full, 1);
  ptx::fence_initialised_barriers();
  const auto* const from = reinterpret_cast<const std::uint8_t*>(p.memory);
  std::uint32_t place = blockIdx.x * 7;
  const auto start = [&](int i) {
    arrive_and_expect(full[i % depth], kCopyBytes);
    load_bulk(&buffers[i % depth], from + place++ % (kMemoryBytes / kCopyBytes) * kCopyBytes, kCopyBytes,
              full[i % depth]);
  };
  for (int i = 0; i < depth - 1; ++i) start(i);
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
    start(i + depth - 1);
    wait(full[i % depth], i / depth & 1);
  }
  for (int i = p.n; i < p.n + depth - 1; ++i) wait(full[i % depth], i / depth & 1);
  report(p, 1);
}

// Reductions of 16 KB into L2, two in flight, the CTAs at different places.
__device__ inline void reductions(const Parameters& p) {
  auto* const values = reinterpret_cast<float*>(buffers[0].bytes);
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(kCopyBytes / 4);
       i += static_cast<int>(blockDim.x)) {
    values[i] = 1;
  }
  ptx::fence_async_shared();
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint32_t place = blockIdx.x * 7;
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
    ptx::add_bulk(p.memory + place++ % (kMemoryBytes / kCopyBytes) * (kCopyBytes / 4), values, kCopyBytes);
    ptx::commit_bulk_group();
    ptx::wait_bulk_read<1>();
  }
  ptx::wait_bulk();
  report(p, 1);
}

}  // namespace flashback::micro
