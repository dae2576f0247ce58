// The two constants that tell the tensor core what it multiplies: the 64-bit descriptor of an operand in
// shared memory (128-byte swizzle) and the 32-bit instruction descriptor (kind::f16, fp32 accumulator).
#pragma once

#include <cstdint>

#include "kernels/shared/dtype.h"

namespace flashback::tile {

// Which dimension of an operand is contiguous: the inner one of the product (K), or its own (M or N).
enum class Major { kInner, kOwn };

inline constexpr int kStepDepth = 16;     // of the inner dimension, in one instruction
inline constexpr int kRowBytes = 128;     // the swizzled row
inline constexpr int kRowElements = 64;   // 16-bit
inline constexpr int kGroupBytes = 1024;  // eight rows: the swizzle pattern

// All fields but the start address. `own` is the operand's extent along M or N.
constexpr std::uint64_t shared_descriptor(Major major, int own, int block_bytes) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{2} << 61, kVersion = std::uint64_t{1} << 46;
  // Between groups of eight rows. A row is eight K-contiguous pieces of M or N, or eight pieces of M or N at
  // one K.
  const std::uint64_t stride = kGroupBytes / 16;
  // Between blocks of 64 elements of M or N; nothing where there is one block. K-major operands ignore it (1
  // by custom).
  const std::uint64_t leading = major == Major::kInner ? 1 : own > kRowElements ? block_bytes / 16 : 0;
  return kSwizzle128 | kVersion | stride << 32 | leading << 16;
}

// Start address field of a shared address, which is below 256 KiB and a multiple of 16.
constexpr std::uint64_t descriptor_address(std::uint32_t shared_address) {
  return (shared_address & 0x3ffff) >> 4;
}

// What one step of 16 along K adds to the start address field: 32 bytes within the row, or 16 rows.
constexpr std::uint64_t descriptor_step(Major major) {
  return (major == Major::kInner ? kStepDepth * 2 : kStepDepth * kRowBytes) / 16;
}

// In tensor memory A has two elements a column.
inline constexpr std::uint32_t kTensorMemoryStep = kStepDepth / 2;

constexpr std::uint32_t instruction_descriptor(shared::Dtype dtype, int m, int n, Major a, Major b) {
  constexpr std::uint32_t kAccumulateF32 = 1 << 4;
  const std::uint32_t format = dtype == shared::Dtype::kBf16 ? 1 : 0;
  return kAccumulateF32 | format << 7 | format << 10 | std::uint32_t{a == Major::kOwn} << 15 |
         std::uint32_t{b == Major::kOwn} << 16 | static_cast<std::uint32_t>(n >> 3) << 17 |
         static_cast<std::uint32_t>(m >> 4) << 24;
}

}  // namespace flashback::tile
