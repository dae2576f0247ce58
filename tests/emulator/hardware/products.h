// The layout of the wgmma experiments.
#pragma once

#include <cstdint>

#include "emulator/machine/units/matrix_arithmetic.h"

namespace flashback::emulator::testing {

inline constexpr int kProductRows = 64, kProductColumns = 8;
inline constexpr int kStepsOfAKind = 16;

struct ProductStep {
  std::uint32_t accumulate;
  std::uint16_t a[kProductRows][kMatrixDepth], b[kProductColumns][kMatrixDepth];
  std::uint32_t c[kProductRows][kProductColumns];
};

}  // namespace flashback::emulator::testing
