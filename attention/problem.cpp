#include "attention/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace flashback {

std::string_view name(Arch arch) {
  return arch == Arch::kSm90 ? "sm90" : "sm100";
}
std::string_view name(Direction direction) {
  return direction == Direction::kForward ? "forward" : "backward";
}
std::string_view name(Dtype dtype) {
  return dtype == Dtype::kBf16 ? "bf16" : "fp16";
}
MaskKind kind_of(const Mask& mask) {
  if (mask.left != kUnlimited) return MaskKind::kWindow;
  return mask.right == kUnlimited ? MaskKind::kDense
         : mask.right == 0        ? MaskKind::kCausal
                                  : MaskKind::kWindow;
}
std::string_view name(MaskKind kind) {
  return kind == MaskKind::kDense ? "dense" : kind == MaskKind::kCausal ? "causal" : "window";
}
std::string name(const Mask& mask) {
  const MaskKind kind = kind_of(mask);
  if (kind == MaskKind::kWindow) return fmt::format("window {},{}", mask.left, mask.right);
  return std::string(name(kind));
}
std::string_view name(TensorMemory memory) {
  return memory == TensorMemory::kSplit ? "split" : "aliased";
}
std::string_view name(Signal signal) {
  return signal == Signal::kWarp ? "warp" : "cta";
}

std::int64_t padded_tiles(std::int64_t seqlen, std::int64_t batch, const Sequences& sequences, int tile) {
  if (!sequences.packed()) return batch * ((seqlen + tile - 1) / tile);
  return (seqlen + std::min(batch, seqlen) * (tile - 1)) / tile;
}

Tensors packed_tensors(const Shape& shape) {
  auto packed = [&](std::int64_t rows, std::int64_t heads) {
    const std::int64_t row = heads * shape.head_dim;
    return Tensor{0, rows * row, row, shape.head_dim};
  };
  const Tensor q = packed(shape.seqlen_q, shape.heads), k = packed(shape.seqlen_k, shape.kv_heads);
  const LseTensor lse{0, shape.heads * shape.seqlen_q, shape.seqlen_q};
  return {.q = q,
          .k = k,
          .v = k,
          .sink = 0,
          .out = q,
          .lse = lse,
          .dout = q,
          .dlse = lse,
          .dq = q,
          .dk = k,
          .dv = k,
          .dsink = 0};
}

float effective_scale(const Problem& problem) {
  if (problem.scale != 0) return problem.scale;
  return static_cast<float>(1 / std::sqrt(static_cast<double>(problem.shape.head_dim)));
}

namespace {

// The enumerators of the C struct count from 0, in the order of ours.
template <typename Ours, typename Theirs>
Status enumerator(const char* argument, Theirs theirs, const char* zero, const char* one, Ours* ours) {
  const auto value = std::bit_cast<unsigned>(theirs);
  if (value > 1) {
    return invalid(fmt::format("{} is {}; it must be {} (0) or {} (1)", argument, value, zero, one));
  }
  *ours = static_cast<Ours>(value);
  return {};
}

// What both the window and the causal flag let through.
Mask mask_from(int causal, const flashback_window& window) {
  Mask mask;
  if (window.bounded) mask = {window.left, window.right};
  if (causal && mask.right >= kUnlimited) mask.right = 0;
  return mask;
}

LseTensor lse_from(const flashback_lse& lse) {
  return {std::bit_cast<Address>(lse.data), lse.batch_stride, lse.head_stride};
}

Tensor tensor_from(const flashback_tensor& tensor) {
  return {std::bit_cast<Address>(tensor.data), tensor.batch_stride, tensor.row_stride, tensor.head_stride};
}

// What both passes are told.
template <typename Arguments>
Status common_part(const Arguments& arguments, const char* type, Problem* problem) {
  if (arguments.size != sizeof arguments) {
    return invalid(fmt::format(
        "size is {}; it must be sizeof({}), which is {} in this version of the library ({}.{})",
        arguments.size, type, sizeof arguments, FLASHBACK_VERSION_MAJOR, FLASHBACK_VERSION_MINOR));
  }
  Problem p;
  if (Status s = enumerator("dtype", arguments.dtype, "FLASHBACK_BF16", "FLASHBACK_F16", &p.dtype); !s.ok())
    return s;
  p.shape = {.batch = arguments.batch,
             .heads = arguments.heads,
             .kv_heads = arguments.kv_heads,
             .seqlen_q = arguments.seqlen_q,
             .seqlen_k = arguments.seqlen_k,
             .head_dim = arguments.head_dim};
  p.q_sequences = {std::bit_cast<Address>(arguments.cu_seqlens_q),
                   std::bit_cast<Address>(arguments.seqused_q)};
  p.k_sequences = {std::bit_cast<Address>(arguments.cu_seqlens_k),
                   std::bit_cast<Address>(arguments.seqused_k)};
  p.mask = mask_from(arguments.causal, arguments.window);
  p.scale = arguments.scale;
  p.leave_unused_rows = arguments.leave_unused_rows != 0;
  p.tensors.q = tensor_from(arguments.q);
  p.tensors.k = tensor_from(arguments.k);
  p.tensors.v = tensor_from(arguments.v);
  p.tensors.sink = std::bit_cast<Address>(arguments.sink);
  p.tensors.out = tensor_from(arguments.out);
  p.tensors.lse = lse_from(arguments.lse);
  p.workspace = std::bit_cast<Address>(arguments.workspace);
  p.workspace_bytes = arguments.workspace_bytes;
  *problem = p;
  return {};
}

}  // namespace

Status problem_from(const flashback_forward_arguments& arguments, Problem* problem) {
  Problem p;
  if (Status s = common_part(arguments, "flashback_forward_arguments", &p); !s.ok()) return s;
  p.direction = Direction::kForward;
  *problem = p;
  return {};
}

Status problem_from(const flashback_backward_arguments& arguments, Problem* problem) {
  Problem p;
  if (Status s = common_part(arguments, "flashback_backward_arguments", &p); !s.ok()) return s;
  p.direction = Direction::kBackward;
  if (Status s = enumerator("tensor_memory", arguments.tensor_memory, "FLASHBACK_SPLIT", "FLASHBACK_ALIASED",
                            &p.tensor_memory);
      !s.ok()) {
    return s;
  }
  if (Status s = enumerator("signal", arguments.signal, "FLASHBACK_WARP", "FLASHBACK_CTA", &p.signal);
      !s.ok())
    return s;
  p.fp32_gradients = arguments.fp32_gradients != 0;
  p.accumulate = arguments.accumulate != 0;
  p.deterministic = arguments.deterministic != 0;
  p.tensors.dout = tensor_from(arguments.dout);
  p.tensors.dlse = lse_from(arguments.dlse);
  p.tensors.dq = tensor_from(arguments.dq);
  p.tensors.dk = tensor_from(arguments.dk);
  p.tensors.dv = tensor_from(arguments.dv);
  p.tensors.dsink = std::bit_cast<Address>(arguments.dsink);
  *problem = p;
  return {};
}

}  // namespace flashback
