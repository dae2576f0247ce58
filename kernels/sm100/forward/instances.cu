// The compiled kernels, one line each; names are made of the fields of their configuration.
#include "kernels/common/schedule.cuh"
#include "kernels/common/unseen.cuh"
#include "kernels/sm100/forward/kernel.cuh"

namespace flashback::sm100::forward {

#define FLASHBACK_SMALL_INSTANCE(name, threads, Parameters, ...) \
  extern "C" __global__ __launch_bounds__(threads) void name(    \
      const __grid_constant__ Parameters parameters) {           \
    __VA_ARGS__(parameters);                                     \
  }

FLASHBACK_SMALL_INSTANCE(schedule_sm100, common::kScheduleThreads, common::ScheduleParameters,
                         common::schedule)
FLASHBACK_SMALL_INSTANCE(unseen_sm100, common::kThreads, common::UnseenParameters, common::unseen)

#define FLASHBACK_INSTANCE(name, ...)                             \
  extern "C" __global__ __launch_bounds__(kThreads, 1) void name( \
      const __grid_constant__ Parameters parameters) {            \
    forward<Config{__VA_ARGS__}>(parameters);                     \
  }

FLASHBACK_INSTANCE(forward_sm100_d64_bf16_dense, 64, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm100_d64_bf16_causal, 64, Dtype::kBf16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm100_d64_bf16_window, 64, Dtype::kBf16, Mask::kWindow)
FLASHBACK_INSTANCE(forward_sm100_d64_fp16_dense, 64, Dtype::kF16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm100_d64_fp16_causal, 64, Dtype::kF16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm100_d64_fp16_window, 64, Dtype::kF16, Mask::kWindow)
FLASHBACK_INSTANCE(forward_sm100_d128_bf16_dense, 128, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm100_d128_bf16_causal, 128, Dtype::kBf16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm100_d128_bf16_window, 128, Dtype::kBf16, Mask::kWindow)
FLASHBACK_INSTANCE(forward_sm100_d128_fp16_dense, 128, Dtype::kF16, Mask::kDense)
FLASHBACK_INSTANCE(forward_sm100_d128_fp16_causal, 128, Dtype::kF16, Mask::kCausal)
FLASHBACK_INSTANCE(forward_sm100_d128_fp16_window, 128, Dtype::kF16, Mask::kWindow)

}  // namespace flashback::sm100::forward
