// Inputs that ordinary random numbers never make: the same bytes for the same kind, shape and seed on every
// machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attention/problem.h"

namespace flashback::reference {

enum class Data {
  kNormal,  // independent, mean 0, variance 1
  kLow,     // every scaled score near -100: exp(0 - lse) overflows fp32
  kHigh,    // every scaled score near +100
  kEqual,   // all queries equal and all keys equal: a uniform softmax
  kZero,    // zeros everywhere
  kHeavy,   // normal, with two channels of each tensor 100 times larger
};

std::string_view name(Data data);  // normal | low | high | equal | zero | heavy
std::optional<Data> data_named(std::string_view name);

// Packed (batch, row, head, channel); every value is one of the dtype's.
struct Inputs {
  std::vector<float> q, k, v, dout;
};

// `scale` is that of the scores: low and high aim at +-100 with it.
Inputs make_inputs(Data data, const Shape& shape, Dtype dtype, double scale, std::uint64_t seed);

}  // namespace flashback::reference
