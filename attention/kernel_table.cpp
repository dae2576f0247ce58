#include "attention/kernel_table.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/common/parameters.h"
#include "kernels/images.h"
#include "kernels/sm100/backward/config.h"
#include "kernels/sm100/forward/config.h"
#include "kernels/sm90/backward/config.h"
#include "kernels/sm90/backward_wide/config.h"
#include "kernels/sm90/forward/config.h"

namespace flashback {
namespace {

namespace blackwell = sm100::backward;
namespace hopper = sm90::backward;

// Null where this build has none.
const KernelImage* find_image(std::string_view name) {
  for (const KernelImage& image : kernel_images()) {
    if (image.name == name) return &image;
  }
  return nullptr;
}

shared::Mask kernel_mask(MaskKind mask) {
  return mask == MaskKind::kDense    ? shared::Mask::kDense
         : mask == MaskKind::kCausal ? shared::Mask::kCausal
                                     : shared::Mask::kWindow;
}
shared::Dtype kernel_dtype(Dtype dtype) {
  return dtype == Dtype::kBf16 ? shared::Dtype::kBf16 : shared::Dtype::kF16;
}

inline constexpr Features kEverything = {.grouped_queries = true,
                                         .empty = true,
                                         .ragged = true,
                                         .dlse = true,
                                         .sink = true,
                                         .fp32_gradients = true,
                                         .deterministic = true};

inline constexpr Features kForwardFeatures = {
    .grouped_queries = true, .empty = true, .ragged = true, .sink = true};

Kernel sm100_backward(int head_dim, Dtype dtype, MaskKind mask, TensorMemory memory, Signal signal) {
  const blackwell::Config config = {
      .head_dim = head_dim,
      .dtype = kernel_dtype(dtype),
      .mask = kernel_mask(mask),
      .tensor_memory = memory == TensorMemory::kSplit ? blackwell::TensorMemory::kSplit
                                                      : blackwell::TensorMemory::kAliased,
      .signal = signal == Signal::kWarp ? blackwell::Signal::kWarp : blackwell::Signal::kCta};
  const KernelImage *const main = find_image("sm100_backward"), *const small = find_image("sm100_common");
  const std::string what = fmt::format("sm100_d{}_{}", config.head_dim, name(dtype));
  const std::string variant = fmt::format("{}_{}_{}", name(mask), name(memory), name(signal));
  return {.arch = Arch::kSm100,
          .direction = Direction::kBackward,
          .head_dim = config.head_dim,
          .least_head_dim = head_dim == 64 ? kHeadDimStep : 64 + kHeadDimStep,
          .dtype = dtype,
          .mask = mask,
          // One map fits at head dim 128, and there is no choice.
          .tensor_memory = head_dim == 64 ? std::optional(memory) : std::nullopt,
          .signal = signal,
          .features = kEverything,
          .tile_q = blackwell::kQueryRows,
          .tile_k = blackwell::kKeyRows,
          .schedule = {"schedule_sm100", small, common::kScheduleThreads, 0},
          .main = {fmt::format("backward_{}_{}", what, variant), main, blackwell::kThreads,
                   blackwell::shared_bytes(head_dim)},
          .preprocess = {"preprocess_" + what, small, common::kThreads, 0},
          .sink = {"sink_sm100", small, common::kThreads, 0},
          .postprocess = {"postprocess_" + what, small, common::kThreads, 0},
          .unseen = {}};
}

Kernel sm90_backward(Dtype dtype, MaskKind mask) {
  const hopper::Config config = {
      .head_dim = hopper::kHeadDim, .dtype = kernel_dtype(dtype), .mask = kernel_mask(mask)};
  const KernelImage* const image = find_image("sm90_backward");
  const std::string what = fmt::format("sm90_d{}_{}", config.head_dim, name(dtype));
  hopper::Config pair = config;
  pair.ctas = 2;
  return {.arch = Arch::kSm90,
          .direction = Direction::kBackward,
          .head_dim = config.head_dim,
          .least_head_dim = kHeadDimStep,
          .dtype = dtype,
          .mask = mask,
          .tensor_memory = {},
          .signal = {},
          .features = kEverything,
          .tile_q = hopper::kQueryRows,
          .tile_k = hopper::kKeyRows,
          .schedule = {"schedule_sm90", image, common::kScheduleThreads, 0},
          .main = {fmt::format("backward_{}_{}", what, name(mask)), image, hopper::kThreads,
                   hopper::shared_bytes(config)},
          .preprocess = {"preprocess_" + what, image, common::kThreads, 0},
          .sink = {"sink_sm90", image, common::kThreads, 0},
          .postprocess = {"postprocess_" + what, image, common::kThreads, 0},
          .pair = mask == MaskKind::kWindow ? Entry{}
                                            : Entry{fmt::format("backward_{}_{}_pair", what, name(mask)),
                                                    image, hopper::kThreads, hopper::shared_bytes(pair)},
          .unseen = {}};
}

Kernel sm90_backward_wide(Dtype dtype, MaskKind mask) {
  namespace wide = sm90::backward_wide;
  const KernelImage *const image = find_image("sm90_backward_wide"), *const small =
                                                                         find_image("sm90_backward");
  const std::string what = fmt::format("sm90_d{}_{}", wide::kHeadDim, name(dtype));
  return {.arch = Arch::kSm90,
          .direction = Direction::kBackward,
          .head_dim = wide::kHeadDim,
          .least_head_dim = hopper::kHeadDim + kHeadDimStep,
          .dtype = dtype,
          .mask = mask,
          .tensor_memory = {},
          .signal = {},
          .features = kEverything,
          .tile_q = wide::kQueryRows,
          .tile_k = wide::kKeyRows,
          .schedule = {"schedule_sm90", small, common::kScheduleThreads, 0},
          .main = {fmt::format("backward_{}_{}", what, name(mask)), image, wide::kThreads,
                   sizeof(wide::SharedMemory)},
          .preprocess = {"preprocess_" + what, image, common::kThreads, 0},
          .sink = {"sink_sm90", small, common::kThreads, 0},
          .postprocess = {"postprocess_" + what, image, common::kThreads, 0},
          .unseen = {}};
}

struct ForwardTile {
  int queries, keys;
  std::uint32_t threads, shared_bytes;
};
ForwardTile forward_tile(Arch arch, int head_dim, Dtype dtype, MaskKind mask) {
  if (arch == Arch::kSm100) {
    return {sm100::forward::kQueryRows, sm100::forward::kKeyRows, sm100::forward::kThreads,
            sm100::forward::shared_bytes(head_dim)};
  }
  const sm90::forward::Config config = {
      .head_dim = head_dim, .dtype = kernel_dtype(dtype), .mask = kernel_mask(mask)};
  return {config.query_rows(), sm90::forward::kKeyRows, static_cast<std::uint32_t>(config.threads()),
          sm90::forward::shared_bytes(head_dim)};
}

Kernel forward(Arch arch, int head_dim, Dtype dtype, MaskKind mask) {
  const ForwardTile tile = forward_tile(arch, head_dim, dtype, mask);
  const KernelImage* const image = find_image(arch == Arch::kSm100 ? "sm100_forward" : "sm90_forward");
  return {.arch = arch,
          .direction = Direction::kForward,
          .head_dim = head_dim,
          .least_head_dim = head_dim == 64 ? kHeadDimStep : 64 + kHeadDimStep,
          .dtype = dtype,
          .mask = mask,
          .tensor_memory = {},
          .signal = {},
          .features = kForwardFeatures,
          .tile_q = tile.queries,
          .tile_k = tile.keys,
          .schedule = {fmt::format("schedule_{}", name(arch)), image, common::kScheduleThreads, 0},
          .main = {fmt::format("forward_{}_d{}_{}_{}", name(arch), head_dim, name(dtype), name(mask)), image,
                   tile.threads, tile.shared_bytes},
          .preprocess = {},
          .sink = {},
          .postprocess = {},
          .unseen = {fmt::format("unseen_{}", name(arch)), image, common::kThreads, 0}};
}

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> rows;
  for (Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
    for (MaskKind mask : {MaskKind::kDense, MaskKind::kCausal, MaskKind::kWindow}) {
      for (TensorMemory memory : {TensorMemory::kSplit, TensorMemory::kAliased}) {
        for (Signal signal : {Signal::kWarp, Signal::kCta})
          rows.push_back(sm100_backward(64, dtype, mask, memory, signal));
      }
      for (Signal signal : {Signal::kWarp, Signal::kCta})
        rows.push_back(sm100_backward(128, dtype, mask, TensorMemory::kAliased, signal));
    }
  }
  for (Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
    for (MaskKind mask : {MaskKind::kDense, MaskKind::kCausal, MaskKind::kWindow})
      rows.push_back(sm90_backward(dtype, mask));
  }
  for (Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
    for (MaskKind mask : {MaskKind::kDense, MaskKind::kCausal, MaskKind::kWindow})
      rows.push_back(sm90_backward_wide(dtype, mask));
  }
  for (Arch arch : {Arch::kSm100, Arch::kSm90}) {
    for (int head_dim : {64, 128}) {
      for (Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
        for (MaskKind mask : {MaskKind::kDense, MaskKind::kCausal, MaskKind::kWindow})
          rows.push_back(forward(arch, head_dim, dtype, mask));
      }
    }
  }
  return rows;
}

// What a row is found by, in bits of one number: a call compares some thirty. Kept apart from the rows, side
// by side, so that it touches few cache lines.
using Key = std::uint32_t;

Key key(Arch arch, Direction direction, Dtype dtype, MaskKind mask, TensorMemory memory, Signal signal) {
  Key bits = 0;
  for (const int field : {static_cast<int>(arch), static_cast<int>(direction), static_cast<int>(dtype),
                          static_cast<int>(mask), static_cast<int>(memory), static_cast<int>(signal)})
    bits = bits << 2 | static_cast<Key>(field);
  return bits;
}

// A row without variants is asked for by the default.
Key key_of(const Kernel& k) {
  return key(k.arch, k.direction, k.dtype, k.mask, k.tensor_memory.value_or(Problem().tensor_memory),
             k.signal.value_or(Problem().signal));
}

}  // namespace

std::span<const Kernel> kernel_table() {
  static const std::vector<Kernel> rows = all_kernels();
  return rows;
}

const Kernel* find_kernel(Arch arch, const Problem& p) {
  static const std::vector<Key> keys = [] {
    std::vector<Key> of_rows;
    for (const Kernel& k : kernel_table()) of_rows.push_back(key_of(k));
    return of_rows;
  }();
  const Key asked = key(arch, p.direction, p.dtype, kind_of(p.mask), p.tensor_memory, p.signal);
  for (std::size_t row = 0; row < keys.size(); ++row) {
    if (keys[row] == asked && takes_head_dim(kernel_table()[row], p.shape.head_dim))
      return &kernel_table()[row];
  }
  return nullptr;
}

bool takes_head_dim(const Kernel& kernel, std::int64_t head_dim) {
  return head_dim >= kernel.least_head_dim && head_dim <= kernel.head_dim && head_dim % kHeadDimStep == 0;
}
bool takes(const Kernel& kernel, TensorMemory memory) {
  return kernel.tensor_memory.value_or(Problem().tensor_memory) == memory;
}
bool takes(const Kernel& kernel, Signal signal) {
  return kernel.signal.value_or(Problem().signal) == signal;
}

}  // namespace flashback
