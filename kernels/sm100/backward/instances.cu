// The compiled kernels, by variants; names are made of the fields of their configuration.
#include "kernels/sm100/backward/kernel.cuh"

namespace flashback::sm100::backward {

#define FLASHBACK_INSTANCE(name, ...)                             \
  extern "C" __global__ __launch_bounds__(kThreads, 1) void name( \
      const __grid_constant__ Parameters parameters) {            \
    backward<Config{__VA_ARGS__}>(parameters);                    \
  }
#define FLASHBACK_SIGNALS(what, memory, ...)                                 \
  FLASHBACK_INSTANCE(backward_sm100_##what##_cta, __VA_ARGS__, memory, kCta) \
  FLASHBACK_INSTANCE(backward_sm100_##what##_warp, __VA_ARGS__, memory, kWarp)
#define FLASHBACK_VARIANTS(what, ...)                      \
  FLASHBACK_SIGNALS(what##_aliased, kAliased, __VA_ARGS__) \
  FLASHBACK_SIGNALS(what##_split, kSplit, __VA_ARGS__)

using enum TensorMemory;
using enum Signal;
constexpr Dtype kBf16 = Dtype::kBf16, kF16 = Dtype::kF16;
constexpr Mask kDense = Mask::kDense, kCausal = Mask::kCausal, kWindow = Mask::kWindow;

FLASHBACK_VARIANTS(d64_bf16_dense, 64, kBf16, kDense)
FLASHBACK_VARIANTS(d64_bf16_causal, 64, kBf16, kCausal)
FLASHBACK_VARIANTS(d64_bf16_window, 64, kBf16, kWindow)
FLASHBACK_VARIANTS(d64_fp16_dense, 64, kF16, kDense)
FLASHBACK_VARIANTS(d64_fp16_causal, 64, kF16, kCausal)
FLASHBACK_VARIANTS(d64_fp16_window, 64, kF16, kWindow)

FLASHBACK_SIGNALS(d128_bf16_dense_aliased, kAliased, 128, kBf16, kDense)
FLASHBACK_SIGNALS(d128_bf16_causal_aliased, kAliased, 128, kBf16, kCausal)
FLASHBACK_SIGNALS(d128_bf16_window_aliased, kAliased, 128, kBf16, kWindow)
FLASHBACK_SIGNALS(d128_fp16_dense_aliased, kAliased, 128, kF16, kDense)
FLASHBACK_SIGNALS(d128_fp16_causal_aliased, kAliased, 128, kF16, kCausal)
FLASHBACK_SIGNALS(d128_fp16_window_aliased, kAliased, 128, kF16, kWindow)

}  // namespace flashback::sm100::backward
