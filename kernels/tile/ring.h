// A position in a ring of `slots` buffers that is filled and emptied again and again.
#pragma once

#include <cstdint>

namespace flashback::tile {

template <int slots>
struct RingPosition {
  int slot = 0;
  std::uint32_t parity = 0;  // of the current round

  // After so many steps from the first slot.
  static constexpr RingPosition after(std::uint32_t steps) {
    return {static_cast<int>(steps % slots), steps / slots % 2};
  }

  // What to wait for at the slot's full barrier: that it was filled in this round.
  constexpr std::uint32_t full() const { return parity; }
  // What to wait for at its empty barrier: that it was emptied in the round before. In the first round that
  // holds at once, since a fresh barrier counts as having ended a phase of parity 1.
  constexpr std::uint32_t empty() const { return parity ^ 1; }

  // Where it was before the last advance.
  constexpr RingPosition before() const {
    return slot == 0 ? RingPosition{slots - 1, parity ^ 1} : RingPosition{slot - 1, parity};
  }
  constexpr void advance() {
    if (++slot == slots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

}  // namespace flashback::tile
