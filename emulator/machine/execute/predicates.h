// Predicates from lanes, and lanes by predicates.
#pragma once

#include <immintrin.h>

#include <array>

#include "emulator/machine/execute/lanes.h"

namespace flashback::emulator {

// One bit for each of the 32 lanes, active or not.
template <class F>
inline LaneMask collect(F&& holds) {
  alignas(32) std::uint8_t byte[32];
  for (int lane = 0; lane < 32; ++lane) byte[lane] = holds(lane) ? 0xff : 0;
  return LaneMask(_mm256_movemask_epi8(_mm256_load_si256(reinterpret_cast<const __m256i*>(byte))));
}

// 1 << lane, as a table: a load and an `and` in a vector loop.
inline constexpr std::array<LaneMask, 32> kLaneBit = [] {
  std::array<LaneMask, 32> bits{};
  for (int lane = 0; lane < 32; ++lane) bits[lane] = LaneMask{1} << lane;
  return bits;
}();

}  // namespace flashback::emulator
