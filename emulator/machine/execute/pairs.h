// Packed registers: two elements a lane, one after the other.
#pragma once

#include "emulator/machine/execute/lanes.h"

namespace flashback::emulator {

// `body` for each of the two elements of the lanes of the mask: elements 2l and 2l + 1 of lane l.
template <class F>
inline void each_of_pairs(LaneMask mask, F&& body) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < 64; ++i) body(i);
  } else {
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      body(2 * lane);
      body(2 * lane + 1);
    }
  }
}

}  // namespace flashback::emulator
