// The compiled kernels, one line each; names are made of the fields of their configuration.
#include "kernels/common/schedule.cuh"
#include "kernels/common/unseen.cuh"
#include "kernels/sm90/forward/kernel.cuh"

namespace flashback::sm90::forward {

#define FLASHBACK_SMALL_INSTANCE(name, threads, Parameters, ...) \
  extern "C" __global__ __launch_bounds__(threads) void name(    \
      const __grid_constant__ Parameters parameters) {           \
    __VA_ARGS__(parameters);                                     \
  }

FLASHBACK_SMALL_INSTANCE(schedule_sm90, common::kScheduleThreads, common::ScheduleParameters,
                         common::schedule)
FLASHBACK_SMALL_INSTANCE(unseen_sm90, common::kThreads, common::UnseenParameters, common::unseen)

#define FLASHBACK_INSTANCE(name, ...)                                                  \
  extern "C" __global__ __launch_bounds__(Config{__VA_ARGS__}.threads(), 1) void name( \
      const __grid_constant__ Parameters parameters) {                                 \
    forward<Config{__VA_ARGS__}>(parameters);                                          \
  }

FLASHBACK_INSTANCE(forward_sm90_d64_bf16_dense, 64, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm90_d64_bf16_causal, 64, Dtype::kBf16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm90_d64_bf16_window, 64, Dtype::kBf16, Mask::kWindow)
FLASHBACK_INSTANCE(forward_sm90_d64_fp16_dense, 64, Dtype::kF16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm90_d64_fp16_causal, 64, Dtype::kF16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm90_d64_fp16_window, 64, Dtype::kF16, Mask::kWindow)
FLASHBACK_INSTANCE(forward_sm90_d128_bf16_dense, 128, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm90_d128_bf16_causal, 128, Dtype::kBf16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm90_d128_bf16_window, 128, Dtype::kBf16, Mask::kWindow)
FLASHBACK_INSTANCE(forward_sm90_d128_fp16_dense, 128, Dtype::kF16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm90_d128_fp16_causal, 128, Dtype::kF16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm90_d128_fp16_window, 128, Dtype::kF16, Mask::kWindow)

}  // namespace flashback::sm90::forward
