// The compiled kernels, one line each; names are made of the fields of their configuration.
#include "kernels/sm100/backward/kernel.cuh"

namespace flashback::sm100::backward {

#define FLASHBACK_INSTANCE(name, ...)                             \
  extern "C" __global__ __launch_bounds__(kThreads, 1) void name( \
      const __grid_constant__ Parameters parameters) {            \
    backward<Config{__VA_ARGS__}>(parameters);                    \
  }

using enum TensorMemory;
using enum Signal;
constexpr Dtype kBf16 = Dtype::kBf16;
constexpr Mask kDense = Mask::kDense, kCausal = Mask::kCausal;

FLASHBACK_INSTANCE(backward_sm100_d64_bf16_dense_aliased_cta, 64, kBf16, kDense, kAliased, kCta)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_dense_aliased_warp, 64, kBf16, kDense, kAliased, kWarp)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_dense_split_cta, 64, kBf16, kDense, kSplit, kCta)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_dense_split_warp, 64, kBf16, kDense, kSplit, kWarp)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_causal_aliased_cta, 64, kBf16, kCausal, kAliased, kCta)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_causal_aliased_warp, 64, kBf16, kCausal, kAliased, kWarp)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_causal_split_cta, 64, kBf16, kCausal, kSplit, kCta)
FLASHBACK_INSTANCE(backward_sm100_d64_bf16_causal_split_warp, 64, kBf16, kCausal, kSplit, kWarp)

}  // namespace flashback::sm100::backward
