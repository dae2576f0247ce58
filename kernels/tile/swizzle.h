// Where tensor maps and the tensor core put the 16-byte chunks of a tile: address bits [4, 4 + n) are
// exclusive-ored with bits [7, 7 + n), n = 3 for 128-byte rows and 2 for 64-byte rows. Bits are those of the
// shared address, so an offset may stand for it only in a tile that is aligned to the pattern (1024 and 512
// bytes).
#pragma once

#include <cstdint>

namespace flashback::tile {

inline constexpr std::uint32_t kChunkBytes = 16;

constexpr std::uint32_t swizzle128(std::uint32_t address) {
  return address ^ (address >> 3 & 0x70);
}
constexpr std::uint32_t swizzle64(std::uint32_t address) {
  return address ^ (address >> 3 & 0x30);
}

}  // namespace flashback::tile
