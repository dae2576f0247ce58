#include "attention/kernel_table.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "kernels/common/parameters.h"
#include "kernels/images.h"
#include "kernels/sm100/backward/config.h"

namespace flashback {
namespace {

namespace blackwell = sm100::backward;

Kernel sm100_backward(Mask mask, TensorMemory memory, Signal signal) {
  constexpr Dtype kDtype = Dtype::kBf16;
  const blackwell::Config config = {
      .head_dim = blackwell::kHeadDim,
      .dtype = blackwell::Dtype::kBf16,
      .mask = mask == Mask::kDense ? blackwell::Mask::kDense : blackwell::Mask::kCausal,
      .tensor_memory = memory == TensorMemory::kSplit ? blackwell::TensorMemory::kSplit
                                                      : blackwell::TensorMemory::kAliased,
      .signal = signal == Signal::kWarp ? blackwell::Signal::kWarp : blackwell::Signal::kCta};
  const std::string what = fmt::format("sm100_d{}_{}", config.head_dim, name(kDtype));
  const std::string variant = fmt::format("{}_{}_{}", name(mask), name(memory), name(signal));
  return {.arch = Arch::kSm100,
          .direction = Direction::kBackward,
          .head_dim = config.head_dim,
          .dtype = kDtype,
          .mask = mask,
          .tensor_memory = memory,
          .signal = signal,
          .tile_q = blackwell::kQueryRows,
          .tile_k = blackwell::kKeyRows,
          .preprocess = {"preprocess_" + what, "sm100_common", common::kThreads, 0},
          .main = {fmt::format("backward_{}_{}", what, variant), "sm100_backward", blackwell::kThreads,
                   blackwell::shared_bytes(config)},
          .postprocess = {"postprocess_" + what, "sm100_common", common::kThreads, 0}};
}

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> rows;
  for (Mask mask : {Mask::kDense, Mask::kCausal}) {
    for (TensorMemory memory : {TensorMemory::kSplit, TensorMemory::kAliased}) {
      for (Signal signal : {Signal::kWarp, Signal::kCta})
        rows.push_back(sm100_backward(mask, memory, signal));
    }
  }
  return rows;
}

}  // namespace

std::span<const Kernel> kernel_table() {
  static const std::vector<Kernel> rows = all_kernels();
  return rows;
}

const Kernel* find_kernel(Arch arch, Direction direction, const Problem& p) {
  for (const Kernel& k : kernel_table()) {
    if (k.arch == arch && k.direction == direction && k.head_dim == p.shape.head_dim && k.dtype == p.dtype &&
        k.mask == p.mask && k.tensor_memory == p.tensor_memory && k.signal == p.signal) {
      return &k;
    }
  }
  return nullptr;
}

const KernelImage* find_image(std::string_view name) {
  for (const KernelImage& image : kernel_images()) {
    if (image.name == name) return &image;
  }
  return nullptr;
}

}  // namespace flashback
