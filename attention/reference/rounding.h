// 16-bit floating point in plain integers: round to nearest, ties to even.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/problem.h"

namespace flashback::reference {

// The nearest value of `dtype`; beyond its range, infinity.
float round_to(Dtype dtype, float value);
void round_to(Dtype dtype, std::span<float> values);

std::uint16_t to_bits(Dtype dtype, float value);
float from_bits(Dtype dtype, std::uint16_t bits);

std::vector<std::uint16_t> to_bits(Dtype dtype, std::span<const float> values);
std::vector<float> from_bits(Dtype dtype, std::span<const std::uint16_t> bits);

}  // namespace flashback::reference
