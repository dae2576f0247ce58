#include "attention/reference/rounding.h"

#include <algorithm>

namespace flashback::reference {
namespace {

std::uint16_t f16_bits(float value) {
  const auto word = std::bit_cast<std::uint32_t>(round_f16(value));
  const std::uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7fffffff;
  if (value != value) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude == 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    return static_cast<std::uint16_t>(sign |
                                      static_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p24f));
  }
  return static_cast<std::uint16_t>(sign | (magnitude - 0x38000000) >>
                                               13);  // the exponent's bias falls from 127 to 15
}

float f16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

std::uint16_t bf16_bits(float value) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(round_bf16(value));
  // A NaN whose payload lies in the bits that go needs one that stays.
  return static_cast<std::uint16_t>(word >> 16 | (value != value ? 0x40 : 0));
}

}  // namespace

std::uint16_t to_bits(Dtype dtype, float value) {
  return dtype == Dtype::kBf16 ? bf16_bits(value) : f16_bits(value);
}

float from_bits(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::kBf16 ? std::bit_cast<float>(std::uint32_t{bits} << 16) : f16_value(bits);
}

std::vector<std::uint16_t> to_bits(Dtype dtype, std::span<const float> values) {
  std::vector<std::uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(),
                 [&](float value) { return to_bits(dtype, value); });
  return bits;
}

std::vector<float> from_bits(Dtype dtype, std::span<const std::uint16_t> bits) {
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(),
                 [&](std::uint16_t b) { return from_bits(dtype, b); });
  return values;
}

}  // namespace flashback::reference
