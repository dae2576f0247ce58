// The compiled kernels, one line each; names are made of the fields of their configuration.
#include "kernels/common/postprocess.cuh"
#include "kernels/common/preprocess.cuh"
#include "kernels/sm90/backward/layout.cuh"
#include "kernels/sm90/backward_wide/kernel.cuh"

namespace flashback::sm90::backward_wide {

#define FLASHBACK_SMALL_INSTANCE(name, Parameters, ...)                \
  extern "C" __global__ __launch_bounds__(common::kThreads) void name( \
      const __grid_constant__ Parameters parameters) {                 \
    __VA_ARGS__(parameters);                                           \
  }

FLASHBACK_SMALL_INSTANCE(preprocess_sm90_d128_bf16, common::PreprocessParameters,
                         common::preprocess<128, Dtype::kBf16, backward::Layout>)
FLASHBACK_SMALL_INSTANCE(preprocess_sm90_d128_fp16, common::PreprocessParameters,
                         common::preprocess<128, Dtype::kF16, backward::Layout>)
FLASHBACK_SMALL_INSTANCE(postprocess_sm90_d128_bf16, common::PostprocessParameters,
                         common::postprocess<128, Dtype::kBf16, backward::Layout>)
FLASHBACK_SMALL_INSTANCE(postprocess_sm90_d128_fp16, common::PostprocessParameters,
                         common::postprocess<128, Dtype::kF16, backward::Layout>)

#define FLASHBACK_INSTANCE(name, ...)                             \
  extern "C" __global__ __launch_bounds__(kThreads, 1) void name( \
      const __grid_constant__ Parameters parameters) {            \
    backward<Config{__VA_ARGS__}>(parameters);                    \
  }

FLASHBACK_INSTANCE(backward_sm90_d128_bf16_dense, 128, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(backward_sm90_d128_bf16_causal, 128, Dtype::kBf16, Mask::kCausal)
FLASHBACK_INSTANCE(backward_sm90_d128_bf16_window, 128, Dtype::kBf16, Mask::kWindow)
FLASHBACK_INSTANCE(backward_sm90_d128_fp16_dense, 128, Dtype::kF16, Mask::kDense)
FLASHBACK_INSTANCE(backward_sm90_d128_fp16_causal, 128, Dtype::kF16, Mask::kCausal)
FLASHBACK_INSTANCE(backward_sm90_d128_fp16_window, 128, Dtype::kF16, Mask::kWindow)

}  // namespace flashback::sm90::backward_wide
