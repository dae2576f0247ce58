// What the host tells the kernels of the bench. Plain C++.
#pragma once

#include <cstdint>

#include "kernels/common/parameters.h"

namespace flashback::bench {

inline constexpr int kThreads = 256;

// fill: `words` pairs of 16-bit numbers, normally distributed with deviation `deviation`, a pure function of
// `seed` and of the place. Any grid.
struct FillParameters {
  std::uint32_t* data;
  std::uint64_t words;
  std::uint32_t seed;
  float deviation;
};

// compare: of each block of 64 rows (x), head (y) and batch (z) the sum of (a - b)^2 and of b^2, NaN where
// there is one. Channels are 64 or 128; one CTA a block.
inline constexpr int kBlockRows = 64;
struct CompareParameters {
  common::View a, b;
  float* sums;  // [batch][head][block][2]
  std::int32_t rows, channels;
};

}  // namespace flashback::bench
