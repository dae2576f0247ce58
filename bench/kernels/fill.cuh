// Normally distributed inputs, made where they are needed: the largest case has 1.3 GB of them.
#pragma once

#include "bench/kernels/parameters.h"
#include "kernels/shared/convert.cuh"

namespace flashback::bench {

// A permutation of 64-bit numbers that spreads every bit of `x` over the result.
__device__ inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  return x ^ x >> 32;
}

// Two independent normal numbers from two uniform ones (Box and Muller).
__device__ inline float2 normal_pair(std::uint64_t bits) {
  constexpr float kUnit = 1.0f / 16777216;
  const float u = (static_cast<float>(bits >> 40) + 1) * kUnit;  // (0, 1]
  const float angle = static_cast<float>(bits & 0xffffff) * (kUnit * 6.2831853f);
  const float radius = __fsqrt_rn(-1.3862944f * __log2f(u));  // sqrt(-2 ln u)
  return {radius * __cosf(angle), radius * __sinf(angle)};
}

template <shared::Dtype dtype>
__device__ void fill(const FillParameters& p) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.words; i += step) {
    const float2 pair = normal_pair(mix(i + (std::uint64_t{p.seed} << 40)));
    p.data[i] = shared::narrow<dtype>(p.deviation * pair.x, p.deviation * pair.y);
  }
}

}  // namespace flashback::bench
