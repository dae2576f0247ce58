// The small kernels around the main one.
#include "kernels/common/postprocess.cuh"
#include "kernels/common/preprocess.cuh"

namespace flashback::common {

using shared::Dtype;

extern "C" __global__ __launch_bounds__(kThreads) void preprocess_sm100_d64_bf16(
    const __grid_constant__ PreprocessParameters parameters) {
  preprocess<Dtype::kBf16>(parameters);
}

extern "C" __global__ __launch_bounds__(kThreads) void postprocess_sm100_d64_bf16(
    const __grid_constant__ PostprocessParameters parameters) {
  postprocess<Dtype::kBf16>(parameters);
}

}  // namespace flashback::common
