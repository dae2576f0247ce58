#include "bench/micro/images.h"

extern "C" const char flashback_sm100_micro_ptx[], flashback_sm100_micro_ptx_end[];
extern "C" const std::byte flashback_sm100_micro_cubin[], flashback_sm100_micro_cubin_end[];
extern "C" const char flashback_sm90_micro_ptx[], flashback_sm90_micro_ptx_end[];
extern "C" const std::byte flashback_sm90_micro_cubin[], flashback_sm90_micro_cubin_end[];

namespace flashback::micro {

const KernelImage& image(Arch arch) {
  static const KernelImage sm100 = {"sm100_micro",
                                    Arch::kSm100,
                                    {flashback_sm100_micro_ptx, flashback_sm100_micro_ptx_end},
                                    {flashback_sm100_micro_cubin, flashback_sm100_micro_cubin_end}};
  static const KernelImage sm90 = {"sm90_micro",
                                   Arch::kSm90,
                                   {flashback_sm90_micro_ptx, flashback_sm90_micro_ptx_end},
                                   {flashback_sm90_micro_cubin, flashback_sm90_micro_cubin_end}};
  return arch == Arch::kSm100 ? sm100 : sm90;
}

}  // namespace flashback::micro
