// Where the elements of an operand in shared memory lie: what the descriptors of tcgen05.mma and of
// wgmma.mma_async both say, each in its own bits.
#pragma once

#include <cstdint>

namespace flashback::emulator {

struct OperandDescriptor {
  std::uint32_t start = 0;          // byte address
  std::uint32_t leading_bytes = 0;  // LBO
  std::uint32_t stride_bytes = 0;   // SBO
  std::uint32_t pattern_bytes = 0;  // width of the swizzle pattern: 16 (none), 32, 64, 128

  std::uint32_t swizzle_mask() const { return pattern_bytes / 16 - 1; }  // 0, 1, 3, 7
};

// The address, before swizzling, of the 16-byte chunk that holds elements [8 * chunk, 8 * chunk + 8) of line
// `line`: in K-major layout a line is a row of the operand and chunks run along K; in MN-major layout a line
// is one k and chunks run along M or N.
//
// Eight lines make a core matrix, pattern_bytes apart from each other. K-major: SBO leads to the next eight
// rows, LBO (without swizzle) to the next chunk of K. MN-major with swizzle: a line holds pattern_bytes of M
// or N, LBO leads to the next such piece, SBO to the next eight k; without swizzle the two exchange their
// parts.
inline std::uint32_t plain_address(const OperandDescriptor& descriptor, bool mn_major, int line, int chunk) {
  const bool swizzled = descriptor.pattern_bytes != 16;
  const auto group = static_cast<std::uint32_t>(line) / 8, in_group = static_cast<std::uint32_t>(line) % 8;
  const auto c = static_cast<std::uint32_t>(chunk);
  const std::uint32_t address = descriptor.start + in_group * descriptor.pattern_bytes;
  if (!mn_major) {
    return address + group * descriptor.stride_bytes + c * (swizzled ? 16 : descriptor.leading_bytes);
  }
  if (!swizzled) return address + group * descriptor.leading_bytes + c * descriptor.stride_bytes;
  const std::uint32_t chunks = descriptor.pattern_bytes / 16;
  return address + group * descriptor.stride_bytes + c / chunks * descriptor.leading_bytes + c % chunks * 16;
}

// The swizzle acts on bits of the absolute address.
inline std::uint32_t swizzled_address(std::uint32_t address, std::uint32_t mask) {
  return address ^ (address >> 7 & mask) << 4;
}

// Address of a chunk.
inline std::uint32_t chunk_address(const OperandDescriptor& descriptor, bool mn_major, int line, int chunk) {
  constexpr std::uint32_t kAddressBits = 0x3ffff;  // what the descriptor can say
  return swizzled_address(plain_address(descriptor, mn_major, line, chunk) & kAddressBits,
                          descriptor.swizzle_mask());
}

}  // namespace flashback::emulator
