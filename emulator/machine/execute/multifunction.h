// The multi-function unit of a Hopper GPU, bit by bit: 2^x, 1/x, 1/sqrt(x), sqrt(x), log2(x) of an f32.
//
// It interpolates. The upper bits of a significand choose a segment, the rest is x (17 bits, 16 where there
// are 128 segments), and
//
//     result = (c0 + c1 x + c2 square(x)) cut off
//
// with integer coefficients and a square that leaves out the partial products below 2^-15 of its range.
// Structure and coefficients were found from the results of an H200 for every significand
// (docs/emulator/h200.md). The unit takes subnormal sources for zeros of their sign and gives no
// subnormal results.
#pragma once

#include "emulator/machine/execute/real.h"

namespace flashback::emulator {

// Of x < 2^17: the square in units of 2^19, without the partial products that are below one unit.
inline std::uint32_t truncated_square(std::uint32_t x) {
  std::uint32_t sum = 0;
  for (int i = 10; i < 17; ++i) {
    const std::uint32_t below = x & ((1u << i) - 1);
    const std::uint32_t row = (below >> (18 - i)) + (1u << (2 * i - 19));
    sum += (x >> i & 1) != 0 ? row : 0;
  }
  return sum;
}

// The coefficients of 2^f for f in [0, 1), segment by segment, packed for one loop over the lanes: c0 in
// units of 2^-26 without its constant; c1 above c2, in units of 2^-21 and 2^-23 of a segment.
extern const std::uint32_t kExponentialC0[64], kExponentialC12[64];

// 2^x, as `ex2.approx.ftz`. One loop of plain arithmetic that becomes vectors.
inline float unit_exp2(float x) {
  // |x| in fixed point, cut to 23 fraction bits; of a negative number the ones' complement, unless it is
  // whole.
  const float magnitude = std::abs(x) < 255 ? std::abs(x) : 255.0f;  // beyond, infinite or zero all the same
  const auto fixed = std::uint32_t(magnitude * 0x1p23f);
  const std::uint32_t whole = fixed & 0x7fffff ? ~fixed : 0 - fixed;
  const std::uint32_t place = bits_of(x) >> 31 ? whole : fixed;
  const std::uint32_t segment = place >> 17 & 63, rest = place & 0x1ffff;
  const std::uint32_t c0 = kExponentialC0[segment], c12 = kExponentialC12[segment];
  // In units of 2^-38 the sum has more than 32 bits; of everything but c1 * (rest / 2) the last bit is not
  // needed.
  constexpr std::uint32_t kConstant = 2018;
  const std::uint32_t c1 = c12 >> 10, c2 = c12 & 0x3ff;
  const std::uint32_t low = ((c0 & 7) << 12 | kConstant) + c1 * (rest & 1) + c2 * truncated_square(rest);
  const std::uint32_t fraction = (c0 >> 3) + ((c1 * (rest >> 1) + (low >> 1)) >> 14);
  const std::int32_t exponent = std::int32_t(place) >> 23;
  float result = float_of(std::uint32_t(exponent + 127) << 23 | fraction);
  result = exponent < -126 ? 0.0f : result;
  result = exponent > 127 ? float_of(0x7f800000) : result;
  return x == x ? result : float_of(kNaN32);
}

float unit_reciprocal(float x);
float unit_reciprocal_root(float x);
float unit_root(float x);
float unit_logarithm(float x);

}  // namespace flashback::emulator
