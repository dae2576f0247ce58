// The kernels of the bench; compiled for each architecture.
#include "bench/kernels/compare.cuh"
#include "bench/kernels/fill.cuh"
#include "kernels/shared/entry.cuh"

namespace flashback::bench {

using shared::Dtype;

FLASHBACK_ENTRY(bench_fill_bf16, (kThreads), FillParameters, fill<Dtype::kBf16>)
FLASHBACK_ENTRY(bench_fill_fp16, (kThreads), FillParameters, fill<Dtype::kF16>)
FLASHBACK_ENTRY(bench_compare_bf16, (kThreads), CompareParameters, compare<Dtype::kBf16>)
FLASHBACK_ENTRY(bench_compare_fp16, (kThreads), CompareParameters, compare<Dtype::kF16>)

}  // namespace flashback::bench
