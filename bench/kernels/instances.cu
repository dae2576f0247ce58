// The kernels of the bench; compiled for each architecture.
#include "bench/kernels/compare.cuh"
#include "bench/kernels/fill.cuh"

namespace flashback::bench {

extern "C" __global__ __launch_bounds__(kThreads) void bench_fill(
    const __grid_constant__ FillParameters parameters) {
  fill(parameters);
}

extern "C" __global__ __launch_bounds__(kThreads) void bench_compare(
    const __grid_constant__ CompareParameters parameters) {
  compare(parameters);
}

}  // namespace flashback::bench
