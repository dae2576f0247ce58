// 2^x as `ex2.approx` gives it, one loop of plain arithmetic that becomes vectors.
#pragma once

#include "emulator/machine/execute/real.h"

namespace flashback::emulator {

// Within 1 ulp over the full range, subnormal results included; exact at integers.
inline float approximate_exp2(float x) {
  // Beyond +-160 every result is infinite or zero already, and n splits into two exponents that a float
  // holds.
  float bounded = x < 160.0f ? x : 160.0f;
  bounded = bounded > -160.0f ? bounded : -160.0f;
  constexpr float kRounds = 0x1.8p23f;  // adding it leaves no fraction bits
  const float n = (bounded + kRounds) - kRounds;
  const float f = bounded - n;  // in [-1/2, 1/2], exact
  // 2^f with value 1 at f = 0: coefficients fitted so that this very evaluation errs by 0.85 ulp at most.
  float p = 0x1.43c0cap-13f;
  p = __builtin_fmaf(p, f, 0x1.5f0a96p-10f);
  p = __builtin_fmaf(p, f, 0x1.3b2a32p-7f);
  p = __builtin_fmaf(p, f, 0x1.c6af7p-5f);
  p = __builtin_fmaf(p, f, 0x1.ebfbe2p-3f);
  p = __builtin_fmaf(p, f, 0x1.62e43p-1f);
  p = __builtin_fmaf(p, f, 1.0f);
  // In two steps, of which the first is exact: a subnormal result is rounded once.
  const std::int32_t exponent = std::int32_t(n), half = exponent >> 1;
  const float power = float_of(std::uint32_t(half + 127) << 23);
  const float rest = float_of(std::uint32_t(exponent - half + 127) << 23);
  const float result = p * power * rest;
  return x == x ? result : float_of(kNaN32);
}

}  // namespace flashback::emulator
