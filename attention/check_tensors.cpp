// Pointers, strides and the workspace.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attention/check.h"
#include "attention/plan.h"

namespace flashback {
namespace {

constexpr std::int64_t kMaxStride = (1LL << 39) - 8;  // elements: a tensor map's strides are below 2^40 bytes
constexpr std::size_t kVectorBytes = 16;              // what a thread reads or writes at a time

struct Axis {
  const char* stride_name;
  std::int64_t size, stride;
};

// A rule is asked in line and its sentence made apart: a call asks some hundred, and breaks none.

// `field` is ".data" where the argument is a struct.
[[gnu::cold]] Status wrong_address(const char* argument, const char* field, Address data,
                                   std::size_t alignment) {
  if (data == 0) return invalid(fmt::format("{}{} is null; it must point to device memory", argument, field));
  return invalid(fmt::format("{}{} is {:#x}; it must be a multiple of {} bytes; nearest accepted: {:#x}",
                             argument, field, data, alignment, data / alignment * alignment));
}
inline Status address(const char* argument, const char* field, Address data, std::size_t alignment) {
  if (data != 0 && data % alignment == 0) return {};
  return wrong_address(argument, field, data, alignment);
}

[[gnu::cold]] Status wrong_stride(const char* tensor, const Axis& axis, std::int64_t unit) {
  const std::int64_t value = axis.stride;
  const std::int64_t nearest = std::clamp((value < 0 ? 0 : value) / unit * unit, std::int64_t{0}, kMaxStride);
  return invalid(fmt::format("{}.{} is {}; it must be from 0 to {} elements{}; nearest accepted: {}", tensor,
                             axis.stride_name, value, kMaxStride,
                             unit == 1 ? "" : fmt::format(" and a multiple of {}", unit), nearest));
}
// Elements keep the alignment of the first, a power of two.
inline Status stride(const char* tensor, const Axis& axis, std::int64_t element_bytes,
                     std::size_t alignment) {
  if (axis.size == 1) return {};  // never multiplied by anything but 0
  const auto unit = static_cast<std::int64_t>(alignment);
  if (axis.stride >= 0 && axis.stride <= kMaxStride && (axis.stride * element_bytes & (unit - 1)) == 0)
    return {};
  return wrong_stride(tensor, axis, unit / element_bytes);
}

[[gnu::cold]] Status past_the_end(const char* tensor) {
  return invalid(fmt::format(
      "{} reaches past the end of the address space with its strides; they are in elements", tensor));
}
// The last element must have an address: data + 2 * (sum of (size - 1) * stride) stays below 2^63.
template <std::size_t n>
inline Status reach(const char* tensor, Address data, const std::array<Axis, n>& axes,
                    std::int64_t element_bytes) {
  auto end = static_cast<std::int64_t>(data);
  bool overflow = end < 0;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    std::int64_t bytes = 0;
    overflow |= __builtin_mul_overflow(axis.size - 1, axis.stride, &bytes);
    overflow |= __builtin_mul_overflow(bytes, element_bytes, &bytes);
    overflow |= __builtin_add_overflow(end, bytes, &end);
  }
  if (!overflow) return {};
  return past_the_end(tensor);
}

// Of a tensor that is written: no two of its elements share an address. Sorted by stride, each axis must step
// over all that the smaller ones cover.
[[gnu::cold]] Status overlapping(const char* tensor, const Axis& axis, std::int64_t covered) {
  return invalid(fmt::format(
      "{}.{} is {}; elements of an output must not overlap, and the axes inside this one cover {} "
      "elements; nearest accepted: {}",
      tensor, axis.stride_name, axis.stride, covered, covered));
}
template <std::size_t n>
inline Status disjoint(const char* tensor, const std::array<Axis, n>& axes, std::int64_t channels) {
  std::array<const Axis*, n> inner_first;
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t at = i;
    for (; at > 0 && inner_first[at - 1]->stride > axes[i].stride; --at)
      inner_first[at] = inner_first[at - 1];
    inner_first[at] = &axes[i];
  }
  std::int64_t covered = channels;
  for (const Axis* axis : inner_first) {
    if (axis->size == 1) continue;
    if (axis->stride < covered) return overlapping(tensor, *axis, covered);
    covered += (axis->size - 1) * axis->stride;
  }
  return {};
}

enum class Access { kRead, kWritten };

// One of the tensors: where it is and how far it extends.
struct Extents {
  std::int64_t batch, rows, heads, channels;

  bool empty() const { return batch == 0 || rows == 0; }
};

Extents extents(const Shape& shape, std::int64_t seqlen, const Sequences& sequences, std::int64_t heads) {
  return {sequences.packed() ? 1 : shape.batch, seqlen, heads, shape.head_dim};
}

// What holds for every tensor; along its last axis, which has no stride, `innermost` elements lie side by
// side.
template <std::size_t n>
inline Status axes_argument(const char* argument, Address data, std::size_t alignment,
                            const std::array<Axis, n>& axes, std::int64_t element_bytes,
                            std::int64_t innermost, Access access) {
  if (Status s = address(argument, ".data", data, alignment); !s.ok()) return s;
  for (const Axis& axis : axes) {
    if (Status s = stride(argument, axis, element_bytes, alignment); !s.ok()) return s;
  }
  if (Status s = reach(argument, data, axes, element_bytes); !s.ok()) return s;
  return access == Access::kWritten ? disjoint(argument, axes, innermost) : Status();
}

Status tensor_argument(const char* argument, const Tensor& tensor, const Extents& size,
                       std::int64_t element_bytes, Access access) {
  if (size.empty()) return {};
  const std::array<Axis, 3> axes = {{{"batch_stride", size.batch, tensor.batch_stride},
                                     {"row_stride", size.rows, tensor.row_stride},
                                     {"head_stride", size.heads, tensor.head_stride}}};
  return axes_argument(argument, tensor.data, kVectorBytes, axes, element_bytes, size.channels, access);
}

Status lse_argument(const char* argument, const LseTensor& lse, const Extents& size, Access access) {
  if (size.empty()) return {};
  const std::array<Axis, 2> axes = {
      {{"batch_stride", size.batch, lse.batch_stride}, {"head_stride", size.heads, lse.head_stride}}};
  return axes_argument(argument, lse.data, 4, axes, 4, size.rows, access);
}

// Numbers of 4 bytes that a caller may leave out.
Status numbers(const char* argument, Address data) {
  return data == 0 ? Status() : address(argument, "", data, 4);
}

Status sink_gradient(const Tensors& t) {
  if (t.sink != 0 && t.dsink == 0)
    return invalid("dsink is null; it must point to device memory, because sink is given");
  if (t.sink == 0 && t.dsink != 0)
    return invalid("dsink is given, but sink is null; accepted: both, or neither");
  return numbers("dsink", t.dsink);
}

// The tensor map of a ragged tensor starts all its rows before the tensor: at an address that there is.
Status room_before(const char* argument, const Tensor& tensor, const Extents& size,
                   const Sequences& sequences) {
  if (size.empty() || !sequences.ragged()) return {};
  const std::int64_t stride = size.rows == 1 ? size.channels : tensor.row_stride;
  std::int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(2 * stride, size.rows, &bytes);
  if (!overflow && static_cast<Address>(bytes) < tensor.data) return {};
  return unsupported(fmt::format(
      "{}.row_stride is {}; its {} rows with cu_seqlens or seqused must span fewer bytes than the address "
      "{:#x} has before it",
      argument, tensor.row_stride, size.rows, tensor.data));
}

// An output, one of the first starts, that starts where another tensor does; interleaved tensors (a packed
// qkv) share a range, never a start.
struct Start {
  const char* argument;
  Address address;
};
template <std::size_t n>
Status separate(std::size_t outputs, const Start (&starts)[n]) {
  for (std::size_t i = 0; i < outputs; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      if (starts[i].address != starts[j].address || starts[i].address == 0) continue;
      return invalid(fmt::format("{} and {} are both {:#x}; an output needs memory of its own",
                                 starts[i].argument, starts[j].argument, starts[i].address));
    }
  }
  return {};
}

struct BothExtents {
  Extents q, k;
};

Status forward_tensors(const Problem& problem, const BothExtents& size) {
  const Tensors& t = problem.tensors;
  Status s = tensor_argument("out", t.out, size.q, 2, Access::kWritten);
  if (s.ok() && t.lse.data != 0) s = lse_argument("lse", t.lse, size.q, Access::kWritten);
  if (s.ok()) {
    s = separate(2, {{"out.data", t.out.data},
                     {"lse.data", t.lse.data},
                     {"q.data", t.q.data},
                     {"k.data", t.k.data},
                     {"v.data", t.v.data},
                     {"sink", t.sink}});
  }
  return s;
}

Status backward_tensors(const Problem& problem, const BothExtents& size) {
  const Tensors& t = problem.tensors;
  const int gradient_bytes = problem.fp32_gradients ? 4 : 2;
  Status s = tensor_argument("out", t.out, size.q, 2, Access::kRead);
  if (s.ok()) s = tensor_argument("dout", t.dout, size.q, 2, Access::kRead);
  if (s.ok()) s = lse_argument("lse", t.lse, size.q, Access::kRead);
  if (s.ok() && t.dlse.data != 0) s = lse_argument("dlse", t.dlse, size.q, Access::kRead);
  if (s.ok()) s = tensor_argument("dq", t.dq, size.q, gradient_bytes, Access::kWritten);
  if (s.ok()) s = tensor_argument("dk", t.dk, size.k, gradient_bytes, Access::kWritten);
  if (s.ok()) s = tensor_argument("dv", t.dv, size.k, gradient_bytes, Access::kWritten);
  if (s.ok()) s = room_before("dout", t.dout, size.q, problem.q_sequences);
  if (s.ok() && !problem.fp32_gradients) s = room_before("dk", t.dk, size.k, problem.k_sequences);
  if (s.ok() && !problem.fp32_gradients) s = room_before("dv", t.dv, size.k, problem.k_sequences);
  if (s.ok()) s = sink_gradient(t);
  if (s.ok()) {
    s = separate(4, {{"dq.data", t.dq.data},
                     {"dk.data", t.dk.data},
                     {"dv.data", t.dv.data},
                     {"dsink", t.dsink},
                     {"q.data", t.q.data},
                     {"k.data", t.k.data},
                     {"v.data", t.v.data},
                     {"out.data", t.out.data},
                     {"dout.data", t.dout.data},
                     {"lse.data", t.lse.data},
                     {"dlse.data", t.dlse.data},
                     {"sink", t.sink}});
  }
  return s;
}

}  // namespace

Status check_tensors(const Problem& problem, std::size_t workspace_needed) {
  const Shape& shape = problem.shape;
  const Tensors& t = problem.tensors;
  const BothExtents size = {extents(shape, shape.seqlen_q, problem.q_sequences, shape.heads),
                            extents(shape, shape.seqlen_k, problem.k_sequences, shape.kv_heads)};
  Status s = tensor_argument("q", t.q, size.q, 2, Access::kRead);
  if (s.ok()) s = tensor_argument("k", t.k, size.k, 2, Access::kRead);
  if (s.ok()) s = tensor_argument("v", t.v, size.k, 2, Access::kRead);
  if (s.ok()) s = room_before("q", t.q, size.q, problem.q_sequences);
  if (s.ok()) s = room_before("k", t.k, size.k, problem.k_sequences);
  if (s.ok()) s = room_before("v", t.v, size.k, problem.k_sequences);
  if (s.ok()) s = numbers("sink", t.sink);
  if (s.ok()) {
    s = problem.direction == Direction::kForward ? forward_tensors(problem, size)
                                                 : backward_tensors(problem, size);
  }
  if (s.ok()) s = numbers("cu_seqlens_q", problem.q_sequences.cu_seqlens);
  if (s.ok()) s = numbers("cu_seqlens_k", problem.k_sequences.cu_seqlens);
  if (s.ok()) s = numbers("seqused_q", problem.q_sequences.seqused);
  if (s.ok()) s = numbers("seqused_k", problem.k_sequences.seqused);
  if (s.ok() && workspace_needed > 0) s = address("workspace", "", problem.workspace, kWorkspaceAlignment);
  if (s.ok() && problem.workspace_bytes < workspace_needed) {
    s = invalid(
        fmt::format("workspace_bytes is {}; this problem needs at least {} (flashback_{}_workspace tells)",
                    problem.workspace_bytes, workspace_needed, name(problem.direction)));
  }
  return s;
}

}  // namespace flashback
