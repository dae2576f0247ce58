// Between fp32 and the 16-bit format of the tensors, two elements a word, the first in the low half.
#pragma once

#include "kernels/ptx/math.cuh"
#include "kernels/shared/dtype.h"

namespace flashback::shared {

template <Dtype dtype>
__device__ std::uint32_t narrow(float low, float high) {
  if constexpr (dtype == Dtype::kBf16) return ptx::to_bf16x2(low, high);
  return ptx::to_f16x2(low, high);
}

template <Dtype dtype>
__device__ float2 widen(std::uint32_t word) {
  if constexpr (dtype == Dtype::kBf16)  // the upper half of an fp32
    return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
  float2 v;
  ptx::from_f16x2(v.x, v.y, word);
  return v;
}

}  // namespace flashback::shared
