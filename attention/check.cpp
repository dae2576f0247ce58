#include "attention/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attention/kernel_table.h"
#include "attention/plan.h"

namespace flashback {
namespace {

constexpr std::int64_t kMaxGrid = 65535;  // CTAs in y (heads)
// The kernels count rows in 32 bits, and add the lengths of both sides and the bounds of a window.
constexpr std::int64_t kMaxRows = 1 << 30;
constexpr std::int64_t kMaxStride = (1LL << 39) - 8;  // elements: a tensor map's strides are below 2^40 bytes
constexpr std::size_t kVectorBytes = 16;              // what a thread reads or writes at a time

Status at_least_one(const char* argument, std::int64_t value) {
  if (value >= 1) return {};
  return invalid(fmt::format("{} is {}; it must be at least 1; nearest accepted: 1", argument, value));
}

Status count(const char* argument, std::int64_t value) {
  if (value < 0)
    return invalid(fmt::format("{} is {}; it must not be negative; nearest accepted: 0", argument, value));
  if (value > kMaxRows) {
    return unsupported(fmt::format("{} is {}; the kernels count in 30 bits; nearest accepted: {}", argument,
                                   value, kMaxRows));
  }
  return {};
}

Status bound(const char* argument, std::int64_t value) {
  if (value >= kUnlimited) return {};
  return invalid(fmt::format(
      "{} is {}; it must be -1, which is no bound, or a number of keys from 0 on; nearest accepted: -1",
      argument, value));
}

Status grid(const char* argument, std::int64_t value) {
  if (value <= kMaxGrid) return {};
  return unsupported(fmt::format("{} is {}; a launch takes at most {}; nearest accepted: {} (split the call)",
                                 argument, value, kMaxGrid, kMaxGrid));
}

// Of `heads`, the divisor nearest to `wanted`, the larger one of two.
std::int64_t nearest_divisor(std::int64_t heads, std::int64_t wanted) {
  for (std::int64_t distance = 0; distance < heads; ++distance) {
    for (const std::int64_t candidate : {wanted + distance, wanted - distance}) {
      if (candidate >= 1 && heads % candidate == 0) return candidate;
    }
  }
  return heads;
}

// What of the problem is legal but not among the kernel's features.
Status features(const Problem& p, const Kernel& kernel) {
  const Features& has = kernel.features;
  const auto refused = [&](const std::string& argument, const std::string& accepted) {
    return unsupported(fmt::format("{}; no {} kernel for {} takes it yet; accepted: {}", argument,
                                   name(kernel.direction), name(kernel.arch), accepted));
  };
  if (p.shape.heads != p.shape.kv_heads && !has.grouped_queries) {
    return refused(fmt::format("kv_heads is {}", p.shape.kv_heads),
                   fmt::format("{}, as many as heads", p.shape.heads));
  }
  const struct {
    bool asked, taken;
    const char *argument, *accepted;
  } uses[] = {
      {p.shape.batch == 0, has.empty, "batch is 0", "1"},
      {p.shape.seqlen_q == 0, has.empty, "seqlen_q is 0", "1"},
      {p.shape.seqlen_k == 0, has.empty, "seqlen_k is 0", "1"},
      {p.q_sequences.packed(), has.ragged, "cu_seqlens_q is given", "NULL"},
      {p.k_sequences.packed(), has.ragged, "cu_seqlens_k is given", "NULL"},
      {p.q_sequences.seqused != 0, has.ragged, "seqused_q is given", "NULL"},
      {p.k_sequences.seqused != 0, has.ragged, "seqused_k is given", "NULL"},
      {p.tensors.dlse.data != 0, has.dlse, "dlse.data is given", "NULL"},
      {p.tensors.sink != 0, has.sink, "sink is given", "NULL"},
      {p.fp32_gradients, has.fp32_gradients, "fp32_gradients is 1", "0"},
      {p.deterministic, has.deterministic, "deterministic is 1", "0"},
  };
  for (const auto& use : uses) {
    if (use.asked && !use.taken) return refused(use.argument, use.accepted);
  }
  return {};
}

Status key_heads(std::int64_t heads, std::int64_t kv_heads) {
  if (heads % kv_heads == 0) return {};
  return invalid(fmt::format("kv_heads is {}; it must divide heads, which is {}; nearest accepted: {}",
                             kv_heads, heads, nearest_divisor(heads, kv_heads)));
}

// A Hopper kernel numbers the tiles that it works on of all heads in 31 bits, and asks for a few more than
// there are: of queries in the forward pass, of keys in the backward pass.
Status tickets(const Problem& p, const Kernel& kernel) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - 4096;
  const Shape& s = p.shape;
  const bool forward = p.direction == Direction::kForward;
  const int tile = forward ? kernel.tile_q : kernel.tile_k;
  const std::int64_t tiles = forward ? padded_tiles(s.seqlen_q, s.batch, p.q_sequences, tile)
                                     : padded_tiles(s.seqlen_k, s.batch, p.k_sequences, tile);
  if (tiles <= kMost / (forward ? s.heads : s.kv_heads)) return {};
  return unsupported(fmt::format(
      "batch {} with {} and {} makes more than {} tiles of {} {}, which the kernel for sm90 "
      "cannot number; split the call",
      s.batch, forward ? fmt::format("heads {}", s.heads) : fmt::format("kv_heads {}", s.kv_heads),
      forward ? fmt::format("seqlen_q {}", s.seqlen_q) : fmt::format("seqlen_k {}", s.seqlen_k), kMost, tile,
      forward ? "queries" : "keys"));
}

// Tiles of all sequences of one side are the CTAs of a grid's x, and in deterministic mode a counter runs
// over those of all heads.
Status grid_tiles(const char* argument, std::int64_t seqlen, const Sequences& sequences, int tile,
                  const Problem& p) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t heads = p.deterministic ? p.shape.heads : 1;
  const std::int64_t tiles = padded_tiles(seqlen, p.shape.batch, sequences, tile);
  if (tiles <= kMost / heads) return {};
  return unsupported(
      fmt::format("batch {} with {} {} makes {} tiles of {} rows; a launch takes at most {}{}; "
                  "split the call",
                  p.shape.batch, argument, seqlen, tiles, tile, kMost / heads,
                  p.deterministic ? fmt::format(" of {} heads", heads) : ""));
}

// The workspace is the largest thing whose size is computed here; when it fits 63 bits, so do its parts. Of
// each side at most the sums of all its tiles, with two more numbers a row, and twice over for k.
Status workspace_size(const Problem& p) {
  const Shape& shape = p.shape;
  const auto bytes = [&](std::int64_t seqlen, const Sequences& sequences, std::int64_t heads) {
    std::int64_t n = padded_tiles(seqlen, shape.batch, sequences, 128);
    bool overflow = false;
    for (std::int64_t factor : {heads, std::int64_t{128}, 2 * shape.head_dim + 2, std::int64_t{4}})
      overflow |= __builtin_mul_overflow(n, factor, &n);
    return overflow ? std::numeric_limits<std::int64_t>::max() : n;
  };
  constexpr std::int64_t kMost = 1LL << 61;
  if (bytes(shape.seqlen_q, p.q_sequences, shape.heads) <= kMost &&
      bytes(shape.seqlen_k, p.k_sequences, shape.kv_heads) <= kMost) {
    return {};
  }
  return invalid(fmt::format(
      "batch {} with heads {}, seqlen_q {} and seqlen_k {} needs more than 2^61 bytes of workspace; split "
      "the call",
      shape.batch, shape.heads, shape.seqlen_q, shape.seqlen_k));
}

// Narrows the rows of the kernel table field by field; the first field that leaves none is the one to name.
class Candidates {
 public:
  explicit Candidates(Direction direction) : direction_(direction) {
    for (const Kernel& kernel : kernel_table()) {
      if (kernel.direction == direction) rows_.push_back(&kernel);
    }
  }

  Status narrow_arch(Arch arch) {
    Status s = narrow("arch", &Kernel::arch, arch, [](Arch a) { return name(a); });
    where_ = fmt::format("for {} ", name(arch));
    return s;
  }

  Status narrow_head_dim(std::int64_t wanted) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (const Kernel* row : rows_) {
      least = std::min(least, row->least_head_dim);
      most = std::max(most, row->head_dim);
    }
    std::vector<std::string> offered;
    if (most > 0) {
      offered.push_back(least == most ? fmt::format("{}", most)
                                      : fmt::format("multiples of {} up to {}", kHeadDimStep, most));
    }
    std::erase_if(rows_, [&](const Kernel* row) { return !takes_head_dim(*row, wanted); });
    return rows_.empty() ? none_takes("head_dim", fmt::format("{}", wanted), offered) : Status();
  }

  // Kernels without variants take the default, so that whoever names none need not know.
  template <typename Field>
  Status narrow_variant(const char* argument, std::optional<Field> Kernel::*field, Field wanted) {
    const bool none =
        std::none_of(rows_.begin(), rows_.end(), [&](const Kernel* row) { return row->*field; });
    if (none && !takes(*rows_.front(), wanted)) {
      return unsupported(fmt::format("{} is {}; the kernel {}has no variants; accepted: {}, the default",
                                     argument, name(wanted), where_, name(Field{})));
    }
    return none ? Status() : narrow(argument, field, std::optional(wanted), [](auto f) { return name(*f); });
  }

  template <typename Field, typename Words>
  Status narrow(const char* argument, Field Kernel::*field, Field wanted, Words words) {
    std::vector<Field> fields;
    for (const Kernel* row : rows_) fields.push_back(row->*field);
    std::erase_if(rows_, [&](const Kernel* row) { return row->*field != wanted; });
    if (!rows_.empty()) return {};
    std::sort(fields.begin(), fields.end());
    std::vector<std::string> offered;
    for (const Field& value : fields) offered.push_back(fmt::format("{}", words(value)));
    return none_takes(argument, fmt::format("{}", words(wanted)), offered);
  }

 private:
  // Of the words offered each once, in their order.
  Status none_takes(const char* argument, const std::string& wanted,
                    const std::vector<std::string>& offered) const {
    std::string accepted;
    for (std::size_t i = 0; i < offered.size(); ++i) {
      if (std::find(offered.begin(), offered.begin() + i, offered[i]) == offered.begin() + i)
        accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", offered[i]);
    }
    if (accepted.empty()) accepted = "none in this build";
    return unsupported(fmt::format("{} is {}; no {} kernel {}takes it yet; accepted: {}", argument, wanted,
                                   name(direction_), where_, accepted));
  }

  Direction direction_;
  std::string where_;
  std::vector<const Kernel*> rows_;
};

// The kernel that answers, or the first field of the problem that no kernel takes.
Status compiled(const Problem& problem, Arch arch, const Kernel** kernel) {
  *kernel = find_kernel(arch, problem);
  if (*kernel) return {};
  const auto word = [](auto value) { return name(value); };
  Candidates candidates(problem.direction);
  Status s = candidates.narrow_arch(arch);
  if (s.ok()) s = candidates.narrow_head_dim(problem.shape.head_dim);
  if (s.ok()) s = candidates.narrow("dtype", &Kernel::dtype, problem.dtype, word);
  if (s.ok()) s = candidates.narrow("mask", &Kernel::mask, kind_of(problem.mask), word);
  if (s.ok()) s = candidates.narrow_variant("tensor_memory", &Kernel::tensor_memory, problem.tensor_memory);
  if (s.ok()) s = candidates.narrow_variant("signal", &Kernel::signal, problem.signal);
  if (s.ok()) s = internal_failure("no kernel answers, and no argument is the reason");
  return s;
}

// --- tensors ---

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

Status check_shape(const Problem& problem, Arch arch, const Kernel** kernel) {
  const Shape& shape = problem.shape;
  Status s = count("batch", shape.batch);
  if (s.ok()) s = at_least_one("heads", shape.heads);
  if (s.ok()) s = at_least_one("kv_heads", shape.kv_heads);
  if (s.ok()) s = count("seqlen_q", shape.seqlen_q);
  if (s.ok()) s = count("seqlen_k", shape.seqlen_k);
  if (s.ok()) s = bound("window.left", problem.mask.left);
  if (s.ok()) s = bound("window.right", problem.mask.right);
  if (s.ok()) s = grid("heads", shape.heads);  // first, for the next looks for divisors among so many
  if (s.ok()) s = key_heads(shape.heads, shape.kv_heads);
  if (s.ok() && !std::isfinite(problem.scale)) {
    s = invalid(fmt::format(
        "scale is {}; it must be finite; accepted: 0, which means 1 / sqrt(head_dim), or a number",
        problem.scale));
  }
  if (s.ok() && problem.accumulate && !problem.fp32_gradients)
    s = invalid("accumulate is 1; gradients are summed in fp32 only; accepted: 0, or 1 with fp32_gradients");
  if (s.ok()) s = compiled(problem, arch, kernel);
  if (s.ok()) s = features(problem, **kernel);
  if (s.ok() && arch == Arch::kSm90) s = tickets(problem, **kernel);
  if (s.ok()) s = grid_tiles("seqlen_q", shape.seqlen_q, problem.q_sequences, (*kernel)->tile_q, problem);
  if (s.ok()) s = grid_tiles("seqlen_k", shape.seqlen_k, problem.k_sequences, (*kernel)->tile_k, problem);
  if (s.ok()) s = workspace_size(problem);
  return s;
}

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
