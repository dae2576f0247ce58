// wgmma: a warpgroup's matrix product D += A * B, 64 x 64 x 16, fp32 accumulators in registers, B in shared
// memory.
//
// Each form exists twice: accumulating, and `fresh` (D = A * B), whose D is an output only, so that the
// compiler need not keep old values alive. A product may be in flight until wgmma_wait, and until then nobody
// may touch its registers: `pin` them after the wait.
#pragma once

#include <cstdint>

#include "kernels/ptx/memory.cuh"
#include "kernels/shared/dtype.h"

namespace flashback::ptx {

// Orders earlier register and shared-memory accesses of the warpgroup before the products that follow.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Returns once at most `pending` of the committed groups are unfinished.
template <int pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Uses of the registers before this point stay before it, uses after it stay after it.
template <int n>
__device__ inline void pin(float (&registers)[n]) {
#pragma unroll
  for (float& r : registers) asm volatile("" : "+f"(r)::"memory");
}

// Descriptor of an operand tile: rows of 128 bytes, 128-byte swizzle, groups of eight rows 1024 bytes apart.
// Its address field counts 16 bytes: a step of 16 along the rows is + 2, a step of 16 rows is + 128.
__device__ inline std::uint64_t wgmma_operand(const void* tile) {
  return 1ull << 62 | 64ull << 32 | 1ull << 16 | (shared_address(tile) & 0x3ffff) >> 4;
}

#define FLASHBACK_D(c)                                                                                    \
  c(d[0]), c(d[1]), c(d[2]), c(d[3]), c(d[4]), c(d[5]), c(d[6]), c(d[7]), c(d[8]), c(d[9]), c(d[10]),     \
      c(d[11]), c(d[12]), c(d[13]), c(d[14]), c(d[15]), c(d[16]), c(d[17]), c(d[18]), c(d[19]), c(d[20]), \
      c(d[21]), c(d[22]), c(d[23]), c(d[24]), c(d[25]), c(d[26]), c(d[27]), c(d[28]), c(d[29]), c(d[30]), \
      c(d[31])
// The instruction up to its A operand; `type` of A and B, `accumulate` 0 or 1.
#define FLASHBACK_WGMMA(type, accumulate)                                               \
  "{\n"                                                                                 \
  ".reg .pred accumulate;\n"                                                            \
  "setp.ne.b32 accumulate, " accumulate                                                 \
  ", 0;\n"                                                                              \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                           \
  " {%0, %1, %2, %3, %4, %5, %6, %7, "                                                  \
  "%8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, " \
  "%25, %26, %27, %28, %29, %30, %31}, "
// Of either type: A in registers, or in shared memory.
#define FLASHBACK_WGMMA_REGISTERS(type, accumulate, output)                                             \
  asm volatile(FLASHBACK_WGMMA(type, accumulate) "{%32, %33, %34, %35}, %36, accumulate, 1, 1, %37;\n}" \
               : FLASHBACK_D(output)                                                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(transposed_b ? 1 : 0))
#define FLASHBACK_WGMMA_SHARED(type, accumulate, output)                                  \
  asm volatile(FLASHBACK_WGMMA(type, accumulate) "%32, %33, accumulate, 1, 1, 0, %34;\n}" \
               : FLASHBACK_D(output)                                                      \
               : "l"(a), "l"(b), "n"(transposed_b ? 1 : 0))
#define FLASHBACK_OF_TYPE(form, accumulate, output) \
  if constexpr (dtype == shared::Dtype::kBf16) {    \
    form("bf16", accumulate, output);               \
  } else {                                          \
    form("f16", accumulate, output);                \
  }

// A in registers, 16 rows a warp. B lies with its K contiguous, or (transposed) with its columns contiguous.
template <shared::Dtype dtype, bool transposed_b>
__device__ inline void wgmma(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b) {
  FLASHBACK_OF_TYPE(FLASHBACK_WGMMA_REGISTERS, "1", "+f")
}

template <shared::Dtype dtype, bool transposed_b>
__device__ inline void wgmma_fresh(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b) {
  FLASHBACK_OF_TYPE(FLASHBACK_WGMMA_REGISTERS, "0", "=f")
}

// A in shared memory with its K contiguous.
template <shared::Dtype dtype, bool transposed_b>
__device__ inline void wgmma(float (&d)[32], std::uint64_t a, std::uint64_t b) {
  FLASHBACK_OF_TYPE(FLASHBACK_WGMMA_SHARED, "1", "+f")
}

template <shared::Dtype dtype, bool transposed_b>
__device__ inline void wgmma_fresh(float (&d)[32], std::uint64_t a, std::uint64_t b) {
  FLASHBACK_OF_TYPE(FLASHBACK_WGMMA_SHARED, "0", "=f")
}

#undef FLASHBACK_OF_TYPE
#undef FLASHBACK_WGMMA_SHARED
#undef FLASHBACK_WGMMA_REGISTERS
#undef FLASHBACK_D
#undef FLASHBACK_WGMMA

}  // namespace flashback::ptx
