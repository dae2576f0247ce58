// Operands of the tensor core in shared memory, by the manual's canonical layouts.
#pragma once

#include <bit>
#include <cstdint>

namespace flashback::emulator::testing {

enum class Major { kK, kMn };

// An operand of extent x K in shared memory, by the manual's canonical layouts (in elements of 2 bytes; T =
// 8).
struct Layout {
  Major major;
  int pattern_bytes;    // 16: no swizzle
  int leading, stride;  // elements
  std::uint32_t code() const {
    return pattern_bytes == 16 ? 0 : pattern_bytes == 32 ? 6 : pattern_bytes == 64 ? 4 : 2;
  }

  int offset(int x, int k) const {
    const int pattern = pattern_bytes / 2;
    if (major == Major::kK) {
      return pattern_bytes == 16 ? x % 8 * 8 + x / 8 * stride + k % 8 + k / 8 * leading
                                 : x % 8 * pattern + x / 8 * stride + k;
    }
    return pattern_bytes == 16 ? x % 8 + x / 8 * stride + k % 8 * 8 + k / 8 * leading
                               : x % pattern + x / pattern * leading + k % 8 * pattern + k / 8 * stride;
  }
  // Bytes from the start of the operand, which is a multiple of 1024.
  std::uint32_t address(int x, int k) const {
    const auto plain = static_cast<std::uint32_t>(2 * offset(x, k));
    return plain ^ (plain >> 7 & static_cast<std::uint32_t>(pattern_bytes / 16 - 1)) << 4;
  }
  std::uint64_t descriptor(std::uint32_t start) const {
    return start >> 4 | static_cast<std::uint64_t>(2 * leading >> 4) << 16 |
           static_cast<std::uint64_t>(2 * stride >> 4) << 32 | std::uint64_t{1} << 46 |
           std::uint64_t{code()} << 61;
  }
};

inline std::uint16_t sixteen_bits(int value, bool bf16) {  // small integers are exact in both types
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (bf16 || value == 0) return static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>(bits >> 16 & 0x8000) | static_cast<std::uint16_t>(exponent << 10) |
         static_cast<std::uint16_t>(bits >> 13 & 0x3ff);
}

constexpr Layout k_major(int pattern, int leading, int stride) {
  return {Major::kK, pattern, leading, stride};
}
constexpr Layout mn_major(int pattern, int leading, int stride) {
  return {Major::kMn, pattern, leading, stride};
}

}  // namespace flashback::emulator::testing
