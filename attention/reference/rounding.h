// 16-bit floating point in plain integers: round to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/problem.h"

namespace flashback::reference {

// Adds half a unit of the last kept place, less one bit when that place is even; a carry runs into the
// exponent as it should. NaNs are kept out: the carry would turn some into infinities.
inline float round_bf16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const float rounded = std::bit_cast<float>((word + 0x7fff + (word >> 16 & 1)) & 0xffff0000);
  return value != value ? value : rounded;
}

// The same with 13 bits cut; from 65520 on infinity, below 2^-14 a multiple of 2^-24, the last place of 0.5f.
inline float round_f16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = word & 0x80000000, magnitude = word & 0x7fffffff;
  const std::uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1)) & 0xffffe000;
  const auto small = std::bit_cast<std::uint32_t>((std::bit_cast<float>(magnitude) + 0.5f) - 0.5f);
  const std::uint32_t finite = magnitude < 0x38800000 ? small : normal;
  const float rounded = std::bit_cast<float>(sign | (magnitude >= 0x477ff000 ? 0x7f800000 : finite));
  return value != value ? value : rounded;
}

// The nearest value of `dtype`; beyond its range, infinity.
inline float round_to(Dtype dtype, float value) {
  return dtype == Dtype::kBf16 ? round_bf16(value) : round_f16(value);
}

std::uint16_t to_bits(Dtype dtype, float value);
float from_bits(Dtype dtype, std::uint16_t bits);

std::vector<std::uint16_t> to_bits(Dtype dtype, std::span<const float> values);
std::vector<float> from_bits(Dtype dtype, std::span<const std::uint16_t> bits);

}  // namespace flashback::reference
