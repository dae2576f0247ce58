// One output of the fused step of tcgen05.mma kind::f16 and wgmma, one term after the other in integers:
// slow, and sharing nothing with the emulator. tests/emulator/hardware/products_test.cpp holds it against a
// GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace flashback::reference {

struct HalfFormat {
  int fraction_bits;
  int exponent_bits;
};
inline constexpr HalfFormat kBf16{7, 8}, kF16{10, 5};

// (-1)^negative * significand * 2^(exponent - fraction bits of its format).
struct Number {
  bool negative;
  int exponent;
  std::uint64_t significand;
};

inline Number unpack(std::uint32_t bits, int fraction_bits, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int field = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const std::uint64_t fraction = bits & ((1u << fraction_bits) - 1);
  const bool negative = bits >> (fraction_bits + exponent_bits) & 1;
  if (field == 0) return {negative, 1 - bias, fraction};
  return {negative, field - bias, fraction | std::uint64_t{1} << fraction_bits};
}

// As a double, infinities and NaN included.
inline double value_of(std::uint32_t bits, int fraction_bits, int exponent_bits) {
  const Number n = unpack(bits, fraction_bits, exponent_bits);
  double magnitude = std::ldexp(static_cast<double>(n.significand), n.exponent - fraction_bits);
  if (n.exponent == 1 << (exponent_bits - 1)) {
    magnitude = n.significand == std::uint64_t{1} << fraction_bits ? HUGE_VAL : std::nan("");
  }
  return n.negative ? -magnitude : magnitude;
}

// `to_odd`: the last bit is set where bits were cut, so that the word can still be rounded to fewer bits.
inline std::uint32_t fused_step(const std::uint16_t* a, HalfFormat a_format, const std::uint16_t* b,
                                HalfFormat b_format, std::uint32_t c, bool to_odd = false) {
  // Infinity and NaN by the rules of IEEE 754, with one NaN. A sum of finite terms is finite in double.
  double plain = value_of(c, 23, 8);
  for (int k = 0; k < 16; ++k) {
    plain += value_of(a[k], a_format.fraction_bits, a_format.exponent_bits) *
             value_of(b[k], b_format.fraction_bits, b_format.exponent_bits);
  }
  if (std::isnan(plain)) return 0x7fffffff;
  if (std::isinf(plain)) return plain < 0 ? 0xff800000 : 0x7f800000;

  // 17 terms, significand times 2^(exponent - 23).
  Number terms[17];
  for (int k = 0; k < 16; ++k) {
    const Number x = unpack(a[k], a_format.fraction_bits, a_format.exponent_bits);
    const Number y = unpack(b[k], b_format.fraction_bits, b_format.exponent_bits);
    terms[k] = {x.negative != y.negative, x.exponent + y.exponent,
                x.significand * y.significand << (23 - a_format.fraction_bits - b_format.fraction_bits)};
  }
  terms[16] = unpack(c, 23, 8);

  int largest = -133;
  for (const Number& term : terms) {
    if (term.significand != 0 && term.exponent > largest) largest = term.exponent;
  }
  // Units of 2^(largest - 25): a term moves left by 2, then right by its distance to the largest exponent.
  std::int64_t sum = 0;
  for (const Number& term : terms) {
    if (term.significand == 0) continue;
    const int distance = largest - term.exponent;
    const std::uint64_t cut = distance > 63 ? 0 : term.significand << 2 >> distance;
    sum += term.negative ? -static_cast<std::int64_t>(cut) : static_cast<std::int64_t>(cut);
  }
  if (sum == 0) return 0;

  // To 24 bits, or fewer on the grid of subnormal numbers, 2^-149.
  std::uint64_t significand = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int unit = largest - 25;
  bool cut = false;
  while (significand >= 1u << 24) cut |= significand & 1, significand >>= 1, ++unit;
  while (significand < 1u << 23 && unit > -149) significand <<= 1, --unit;
  while (unit < -149 && significand != 0) significand >>= 1, ++unit;
  if (significand == 0) return 0;
  if (to_odd && cut) significand |= 1;
  const std::uint32_t sign = sum < 0 ? 0x80000000 : 0;
  if (significand < 1u << 23) return sign | static_cast<std::uint32_t>(significand);
  const int field = unit + 23 + 127;
  if (field >= 255) return sign | 0x7f800000;
  return sign | static_cast<std::uint32_t>(field) << 23 |
         (static_cast<std::uint32_t>(significand) & 0x7fffff);
}

}  // namespace flashback::reference
