#include "bench/kernels/images.h"

// The symbols are made by cmake/kernel_image.cmake.
extern "C" const char flashback_bench_sm90_ptx[], flashback_bench_sm90_ptx_end[];
extern "C" const std::byte flashback_bench_sm90_cubin[], flashback_bench_sm90_cubin_end[];
extern "C" const char flashback_bench_sm100_ptx[], flashback_bench_sm100_ptx_end[];
extern "C" const std::byte flashback_bench_sm100_cubin[], flashback_bench_sm100_cubin_end[];

namespace flashback::bench {

const KernelImage& kernels_for(Arch arch) {
  static const KernelImage sm90 = {"bench_sm90",
                                   Arch::kSm90,
                                   {flashback_bench_sm90_ptx, flashback_bench_sm90_ptx_end},
                                   {flashback_bench_sm90_cubin, flashback_bench_sm90_cubin_end}};
  static const KernelImage sm100 = {"bench_sm100",
                                    Arch::kSm100,
                                    {flashback_bench_sm100_ptx, flashback_bench_sm100_ptx_end},
                                    {flashback_bench_sm100_cubin, flashback_bench_sm100_cubin_end}};
  return arch == Arch::kSm90 ? sm90 : sm100;
}

}  // namespace flashback::bench
