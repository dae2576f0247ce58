// Places in tensor memory: 128 lanes, each of 512 columns of 32 bits. An address is lane << 16 | column.
#pragma once

#include <cstdint>

namespace flashback::tile {

inline constexpr int kTensorMemoryColumns = 512;

// The 32 lanes that a warp can reach, by its number in the CTA; to be added to a column's address.
constexpr std::uint32_t lanes_of(int warp) {
  return static_cast<std::uint32_t>(warp % 4 * 32) << 16;
}

struct Columns {
  int first, count;

  constexpr int end() const { return first + count; }
  constexpr bool overlaps(Columns other) const { return first < other.end() && other.first < end(); }
  constexpr bool contains(Columns other) const { return first <= other.first && other.end() <= end(); }
};

}  // namespace flashback::tile
