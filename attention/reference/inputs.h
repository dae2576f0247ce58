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
  std::vector<float> dlse;  // fp32, packed as lse; empty: there is none
  std::vector<float> sink;  // fp32, of each head; empty: there is none
};

// `scale` is that of the scores: low and high aim at +-100 with it.
// Neither dlse nor sink.
Inputs make_inputs(Data data, const Shape& shape, Dtype dtype, double scale, std::uint64_t seed);

// Normal numbers for dlse, in the order of lse, and for the sink of each head.
std::vector<float> make_dlse(std::int64_t size, std::uint64_t seed);
std::vector<float> make_sink(std::int64_t heads, std::uint64_t seed);

}  // namespace flashback::reference
