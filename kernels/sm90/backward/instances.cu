// The compiled kernels, one line each; names are made of the fields of their configuration.
#include "kernels/common/postprocess.cuh"
#include "kernels/common/preprocess.cuh"
#include "kernels/common/schedule.cuh"
#include "kernels/common/sink.cuh"
#include "kernels/sm90/backward/kernel.cuh"
#include "kernels/sm90/backward/layout.cuh"

namespace flashback::sm90::backward {

#define FLASHBACK_SMALL_INSTANCE(name, threads, Parameters, ...) \
  extern "C" __global__ __launch_bounds__(threads) void name(    \
      const __grid_constant__ Parameters parameters) {           \
    __VA_ARGS__(parameters);                                     \
  }

FLASHBACK_SMALL_INSTANCE(schedule_sm90, common::kScheduleThreads, common::ScheduleParameters,
                         common::schedule)
FLASHBACK_SMALL_INSTANCE(sink_sm90, common::kThreads, common::SinkParameters, common::sum_sink)
FLASHBACK_SMALL_INSTANCE(preprocess_sm90_d64_bf16, common::kThreads, common::PreprocessParameters,
                         common::preprocess<64, Dtype::kBf16, Layout>)
FLASHBACK_SMALL_INSTANCE(preprocess_sm90_d64_fp16, common::kThreads, common::PreprocessParameters,
                         common::preprocess<64, Dtype::kF16, Layout>)
FLASHBACK_SMALL_INSTANCE(postprocess_sm90_d64_bf16, common::kThreads, common::PostprocessParameters,
                         common::postprocess<64, Dtype::kBf16, Layout>)
FLASHBACK_SMALL_INSTANCE(postprocess_sm90_d64_fp16, common::kThreads, common::PostprocessParameters,
                         common::postprocess<64, Dtype::kF16, Layout>)

#define FLASHBACK_INSTANCE(name, ...)                             \
  extern "C" __global__ __launch_bounds__(kThreads, 1) void name( \
      const __grid_constant__ Parameters parameters) {            \
    backward<Config{__VA_ARGS__}>(parameters);                    \
  }

FLASHBACK_INSTANCE(backward_sm90_d64_bf16_dense, 64, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_causal, 64, Dtype::kBf16, Mask::kCausal)
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_window, 64, Dtype::kBf16, Mask::kWindow)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_dense, 64, Dtype::kF16, Mask::kDense)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_causal, 64, Dtype::kF16, Mask::kCausal)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_window, 64, Dtype::kF16, Mask::kWindow)
// Pairs.
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_dense_pair, 64, Dtype::kBf16, Mask::kDense, 2)
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_causal_pair, 64, Dtype::kBf16, Mask::kCausal, 2)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_dense_pair, 64, Dtype::kF16, Mask::kDense, 2)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_causal_pair, 64, Dtype::kF16, Mask::kCausal, 2)

}  // namespace flashback::sm90::backward
