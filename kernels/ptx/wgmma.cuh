// wgmma: a warpgroup's matrix product D += A * B, 64 x 64 or 128 x 16, fp32 accumulators in registers, B in
// shared memory.
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
// Its address field counts 16 bytes: a step of 16 along the rows is + 2, a step of 16 rows is + 128. A
// product down the columns of tiles side by side goes from one to the next `slab_bytes` further on.
__device__ inline std::uint64_t wgmma_operand(const void* tile, int slab_bytes = 16) {
  return 1ull << 62 | 64ull << 32 | static_cast<std::uint64_t>(slab_bytes / 16) << 16 |
         (shared_address(tile) & 0x3ffff) >> 4;
}

// Accumulators of 64 and of 128 columns: as operands of the asm statement, and as they stand in its text.
#define FLASHBACK_D32(c, i)                                                                             \
  c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7]),   \
      c(d[i + 8]), c(d[i + 9]), c(d[i + 10]), c(d[i + 11]), c(d[i + 12]), c(d[i + 13]), c(d[i + 14]),   \
      c(d[i + 15]), c(d[i + 16]), c(d[i + 17]), c(d[i + 18]), c(d[i + 19]), c(d[i + 20]), c(d[i + 21]), \
      c(d[i + 22]), c(d[i + 23]), c(d[i + 24]), c(d[i + 25]), c(d[i + 26]), c(d[i + 27]), c(d[i + 28]), \
      c(d[i + 29]), c(d[i + 30]), c(d[i + 31])
#define FLASHBACK_OPERANDS_64(c) FLASHBACK_D32(c, 0)
#define FLASHBACK_OPERANDS_128(c) FLASHBACK_D32(c, 0), FLASHBACK_D32(c, 32)
#define FLASHBACK_TEXT_64                                                                                \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FLASHBACK_TEXT_128                                                                                 \
  FLASHBACK_TEXT_64                                                                                        \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
// What follows the accumulators: A in registers and B, or A in shared memory and B; the last ones say what is
// transposed.
#define FLASHBACK_A_REGISTERS_64 "{%32, %33, %34, %35}, %36, accumulate, 1, 1, %37"
#define FLASHBACK_A_REGISTERS_128 "{%64, %65, %66, %67}, %68, accumulate, 1, 1, %69"
#define FLASHBACK_A_SHARED_64 "%32, %33, accumulate, 1, 1, %34, %35"
#define FLASHBACK_A_SHARED_128 "%64, %65, accumulate, 1, 1, %66, %67"
// The statement. `type` of A and B, `accumulate` 0 or 1, `output` the constraint of an accumulator.
#define FLASHBACK_WGMMA(n, type, a_and_b, accumulate, output, ...)                                          \
  asm volatile(                                                                                             \
      "{\n"                                                                                                 \
      ".reg .pred accumulate;\n"                                                                            \
      "setp.ne.b32 accumulate, " accumulate                                                                 \
      ", 0;\n"                                                                                              \
      "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" FLASHBACK_TEXT_##n "}, " a_and_b \
                                                                                              ";\n}"        \
      : FLASHBACK_OPERANDS_##n(output)                                                                      \
      : __VA_ARGS__, "n"(transposed_b ? 1 : 0))
#define FLASHBACK_OF_TYPE(n, a_and_b, accumulate, output, ...)            \
  if constexpr (dtype == shared::Dtype::kBf16) {                          \
    FLASHBACK_WGMMA(n, "bf16", a_and_b, accumulate, output, __VA_ARGS__); \
  } else {                                                                \
    FLASHBACK_WGMMA(n, "f16", a_and_b, accumulate, output, __VA_ARGS__);  \
  }

// A in registers, 16 rows a warp, or in shared memory with its K contiguous or (transposed) with its rows
// contiguous, of which a tile has 64. B lies with its K contiguous, or (transposed) with its columns
// contiguous.
#define FLASHBACK_PRODUCTS(n, floats)                                                                      \
  template <shared::Dtype dtype, bool transposed_b>                                                        \
  __device__ inline void wgmma(float(&d)[floats], const std::uint32_t(&a)[4], std::uint64_t b) {           \
    FLASHBACK_OF_TYPE(n, FLASHBACK_A_REGISTERS_##n, "1", "+f", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), \
                      "l"(b))                                                                              \
  }                                                                                                        \
  template <shared::Dtype dtype, bool transposed_b>                                                        \
  __device__ inline void wgmma_fresh(float(&d)[floats], const std::uint32_t(&a)[4], std::uint64_t b) {     \
    FLASHBACK_OF_TYPE(n, FLASHBACK_A_REGISTERS_##n, "0", "=f", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), \
                      "l"(b))                                                                              \
  }                                                                                                        \
  template <shared::Dtype dtype, bool transposed_b, bool transposed_a = false>                             \
  __device__ inline void wgmma(float(&d)[floats], std::uint64_t a, std::uint64_t b) {                      \
    FLASHBACK_OF_TYPE(n, FLASHBACK_A_SHARED_##n, "1", "+f", "l"(a), "l"(b), "n"(transposed_a ? 1 : 0))     \
  }                                                                                                        \
  template <shared::Dtype dtype, bool transposed_b, bool transposed_a = false>                             \
  __device__ inline void wgmma_fresh(float(&d)[floats], std::uint64_t a, std::uint64_t b) {                \
    FLASHBACK_OF_TYPE(n, FLASHBACK_A_SHARED_##n, "0", "=f", "l"(a), "l"(b), "n"(transposed_a ? 1 : 0))     \
  }
FLASHBACK_PRODUCTS(64, 32)
FLASHBACK_PRODUCTS(128, 64)

#undef FLASHBACK_PRODUCTS
#undef FLASHBACK_OF_TYPE
#undef FLASHBACK_WGMMA
#undef FLASHBACK_A_SHARED_128
#undef FLASHBACK_A_SHARED_64
#undef FLASHBACK_A_REGISTERS_128
#undef FLASHBACK_A_REGISTERS_64
#undef FLASHBACK_TEXT_128
#undef FLASHBACK_TEXT_64
#undef FLASHBACK_OPERANDS_128
#undef FLASHBACK_OPERANDS_64
#undef FLASHBACK_D32

}  // namespace flashback::ptx
