// What a workspace query may ask: shapes and choices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "attention/check.h"
#include "attention/kernel_table.h"

namespace flashback {
namespace {

constexpr std::int64_t kMaxGrid = 65535;  // CTAs in y (heads)
// The kernels count rows in 32 bits, and add the lengths of both sides and the bounds of a window.
constexpr std::int64_t kMaxRows = 1 << 30;

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

}  // namespace flashback
