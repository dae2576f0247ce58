// A range of tensor memory columns: 128 lanes of 32 bits each.
#pragma once

namespace flashback::tile {

inline constexpr int kTensorMemoryColumns = 512;

struct Columns {
  int first, count;

  constexpr int end() const { return first + count; }
  constexpr bool overlaps(Columns other) const { return first < other.end() && other.first < end(); }
  constexpr bool contains(Columns other) const { return first <= other.first && other.end() <= end(); }
};

}  // namespace flashback::tile
