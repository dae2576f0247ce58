#include "attention/kernel_table.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "kernels/common/parameters.h"
#include "kernels/images.h"
#include "kernels/sm100/backward/config.h"
#include "kernels/sm90/backward/config.h"

namespace flashback {
namespace {

namespace blackwell = sm100::backward;
namespace hopper = sm90::backward;

Kernel sm100_backward(MaskKind mask, TensorMemory memory, Signal signal) {
  constexpr Dtype kDtype = Dtype::kBf16;
  const blackwell::Config config = {
      .head_dim = blackwell::kHeadDim,
      .dtype = blackwell::Dtype::kBf16,
      .mask = mask == MaskKind::kDense ? blackwell::Mask::kDense : blackwell::Mask::kCausal,
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
          .features = {},
          .tile_q = blackwell::kQueryRows,
          .tile_k = blackwell::kKeyRows,
          .preprocess = {"preprocess_" + what, "sm100_common", common::kThreads, 0},
          .main = {fmt::format("backward_{}_{}", what, variant), "sm100_backward", blackwell::kThreads,
                   blackwell::shared_bytes(config)},
          .postprocess = {"postprocess_" + what, "sm100_common", common::kThreads, 0}};
}

Kernel sm90_backward(MaskKind mask) {
  constexpr Dtype kDtype = Dtype::kBf16;
  const hopper::Config config = {
      .head_dim = hopper::kHeadDim,
      .dtype = hopper::Dtype::kBf16,
      .mask = mask == MaskKind::kDense ? hopper::Mask::kDense : hopper::Mask::kCausal};
  constexpr std::string_view kImage = "sm90_backward";
  const std::string what = fmt::format("sm90_d{}_{}", config.head_dim, name(kDtype));
  return {.arch = Arch::kSm90,
          .direction = Direction::kBackward,
          .head_dim = config.head_dim,
          .dtype = kDtype,
          .mask = mask,
          .tensor_memory = {},
          .signal = {},
          .features = {.grouped_queries = true},
          .tile_q = hopper::kQueryRows,
          .tile_k = hopper::kKeyRows,
          .preprocess = {"stats_" + what, kImage, hopper::kStatsThreads, 0},
          .main = {fmt::format("backward_{}_{}", what, name(mask)), kImage, hopper::kThreads,
                   hopper::shared_bytes(config)},
          .postprocess = {"convert_" + what, kImage, hopper::kConvertThreads, 0}};
}

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> rows;
  for (MaskKind mask : {MaskKind::kDense, MaskKind::kCausal}) {
    for (TensorMemory memory : {TensorMemory::kSplit, TensorMemory::kAliased}) {
      for (Signal signal : {Signal::kWarp, Signal::kCta})
        rows.push_back(sm100_backward(mask, memory, signal));
    }
  }
  for (MaskKind mask : {MaskKind::kDense, MaskKind::kCausal}) rows.push_back(sm90_backward(mask));
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
        k.mask == kind_of(p.mask) && takes(k, p.tensor_memory) && takes(k, p.signal)) {
      return &k;
    }
  }
  return nullptr;
}

bool takes(const Kernel& kernel, TensorMemory memory) {
  return kernel.tensor_memory.value_or(Problem().tensor_memory) == memory;
}
bool takes(const Kernel& kernel, Signal signal) {
  return kernel.signal.value_or(Problem().signal) == signal;
}

const KernelImage* find_image(std::string_view name) {
  for (const KernelImage& image : kernel_images()) {
    if (image.name == name) return &image;
  }
  return nullptr;
}

}  // namespace flashback
