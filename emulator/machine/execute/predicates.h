// Predicates from lanes, and lanes from predicates.
#pragma once

#include <immintrin.h>

#include "emulator/machine/execute/lanes.h"

namespace flashback::emulator {

// One bit for each of the 32 lanes, active or not.
template <class F>
inline LaneMask collect(F&& holds) {
  alignas(32) std::uint8_t byte[32];
  for (int lane = 0; lane < 32; ++lane) byte[lane] = holds(lane) ? 0xff : 0;
  return LaneMask(_mm256_movemask_epi8(_mm256_load_si256(reinterpret_cast<const __m256i*>(byte))));
}

inline bool holds(LaneMask bits, int lane) {
  return bits >> lane & 1;
}

}  // namespace flashback::emulator
