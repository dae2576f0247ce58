// The compiled kernels, one line each; names are made of the fields of their configuration.
#include "kernels/sm90/backward/kernel.cuh"
#include "kernels/sm90/backward/stats.cuh"

namespace flashback::sm90::backward {

extern "C" __global__ __launch_bounds__(kStatsThreads) void stats_sm90_d64_bf16(
    const __grid_constant__ StatsParameters parameters) {
  compute_stats<Dtype::kBf16>(parameters);
}

extern "C" __global__ __launch_bounds__(kConvertThreads) void convert_sm90_d64_bf16(
    const __grid_constant__ ConvertParameters parameters) {
  convert<Dtype::kBf16>(parameters);
}

#define FLASHBACK_INSTANCE(name, ...)                             \
  extern "C" __global__ __launch_bounds__(kThreads, 1) void name( \
      const __grid_constant__ Parameters parameters) {            \
    backward<Config{__VA_ARGS__}>(parameters);                    \
  }

FLASHBACK_INSTANCE(backward_sm90_d64_bf16_dense, 64, Dtype::kBf16, Mask::kDense)
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_causal, 64, Dtype::kBf16, Mask::kCausal)

}  // namespace flashback::sm90::backward
