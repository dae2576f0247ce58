// What `.sync.aligned` instructions ask of a warp.
#pragma once

#include <fmt/format.h>

#include "emulator/machine/warp.h"

namespace flashback::emulator {

// The whole warp executes it, none of its lanes has exited.
inline bool whole_warp(Warp& warp, const Step& step) {
  if (!warp.gathers(kAllLanes)) return false;
  if (warp.live() != kAllLanes) {
    warp.fault(step, fmt::format("a warp of lanes {:#010x} executes it; all 32 must", warp.live()));
  }
  return true;
}

// The value on which all lanes agree.
template <class T>
T uniform(const Warp& warp, const Step& step, Slot slot, const char* what) {
  const T* value = warp.lanes<T>(slot);
  for (int l = 1; l < 32; ++l) {
    if (value[l] != value[0]) {
      warp.fault(step, fmt::format("{} is {:#x} in lane 0 and {:#x} in lane {}; all lanes must agree", what,
                                   value[0], value[l], l));
    }
  }
  return value[0];
}

}  // namespace flashback::emulator
