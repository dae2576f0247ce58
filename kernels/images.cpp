#include "kernels/images.h"

// The symbols are made by cmake/kernel_image.cmake.
#define FLASHBACK_DECLARE_IMAGE(name)                                           \
  extern "C" const char flashback_##name##_ptx[], flashback_##name##_ptx_end[]; \
  extern "C" const std::byte flashback_##name##_cubin[], flashback_##name##_cubin_end[];
#define FLASHBACK_IMAGE(name, arch)                                                                     \
  make_image(#name, arch, flashback_##name##_ptx, flashback_##name##_ptx_end, flashback_##name##_cubin, \
             flashback_##name##_cubin_end)

FLASHBACK_DECLARE_IMAGE(sm100_backward)
FLASHBACK_DECLARE_IMAGE(sm100_forward)
FLASHBACK_DECLARE_IMAGE(sm100_common)
FLASHBACK_DECLARE_IMAGE(sm90_backward)
FLASHBACK_DECLARE_IMAGE(sm90_backward_wide)
FLASHBACK_DECLARE_IMAGE(sm90_forward)

namespace flashback {
namespace {

KernelImage make_image(std::string_view name, Arch arch, const char* ptx, const char* ptx_end,
                       const std::byte* cubin, const std::byte* cubin_end) {
  return {name, arch, {ptx, ptx_end}, {cubin, cubin_end}};
}

}  // namespace

std::span<const KernelImage> kernel_images() {
  static const KernelImage images[] = {
      FLASHBACK_IMAGE(sm100_backward, Arch::kSm100),    FLASHBACK_IMAGE(sm100_forward, Arch::kSm100),
      FLASHBACK_IMAGE(sm100_common, Arch::kSm100),      FLASHBACK_IMAGE(sm90_backward, Arch::kSm90),
      FLASHBACK_IMAGE(sm90_backward_wide, Arch::kSm90), FLASHBACK_IMAGE(sm90_forward, Arch::kSm90),
  };
  return images;
}

}  // namespace flashback
