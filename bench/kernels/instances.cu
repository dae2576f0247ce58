// The kernels of the bench; compiled for each architecture.
#include "bench/kernels/compare.cuh"
#include "bench/kernels/fill.cuh"

namespace flashback::bench {

using shared::Dtype;

#define FLASHBACK_BENCH_KERNELS(word, dtype)                                   \
  extern "C" __global__ __launch_bounds__(kThreads) void bench_fill_##word(    \
      const __grid_constant__ FillParameters parameters) {                     \
    fill<dtype>(parameters);                                                   \
  }                                                                            \
  extern "C" __global__ __launch_bounds__(kThreads) void bench_compare_##word( \
      const __grid_constant__ CompareParameters parameters) {                  \
    compare<dtype>(parameters);                                                \
  }

FLASHBACK_BENCH_KERNELS(bf16, Dtype::kBf16)
FLASHBACK_BENCH_KERNELS(fp16, Dtype::kF16)

}  // namespace flashback::bench
