// The options that say which pass over attention is meant; `run` and `plan` share them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "program/app.h"
#include "program/lengths.h"

namespace flashback::program {

// A shape of which some extents are still open.
struct PartialShape {
  std::optional<std::int64_t> batch, heads, kv_heads, seqlen_q, seqlen_k, head_dim;
};

// batch 1, heads 1, kv_heads = heads, seqlen_q 128, seqlen_k = seqlen_q, head_dim 64.
Shape with_defaults(const PartialShape& partial);

struct Variant {
  TensorMemory tensor_memory = TensorMemory::kSplit;
  Signal signal = Signal::kWarp;
};
std::string name(const Variant& variant);  // split/warp

class ProblemOptions {
 public:
  explicit ProblemOptions(Direction direction = Direction::kBackward) : direction_(direction) {}
  void add_to(CLI::App& command);

  // Each throws a Failure when a value breaks its rule.
  PartialShape shape() const;
  Lengths lengths() const;
  bool names_lengths() const { return cu_seqlens_q_ || cu_seqlens_k_ || seqused_q_ || seqused_k_; }
  Problem problem() const;  // of the default variant; its shape has defaults where nothing was said
  bool sink() const { return sink_; }
  bool dlse() const { return dlse_; }
  std::optional<Arch> arch() const;
  std::vector<Variant> variants() const;  // at least one

 private:
  Dtype dtype() const;
  Mask mask() const;
  float scale() const;  // 0: 1 / sqrt(head_dim)

  Direction direction_;
  std::optional<std::string> batch_, heads_, kv_heads_, seqlen_q_, seqlen_k_, head_dim_;
  std::optional<std::string> window_, cu_seqlens_q_, cu_seqlens_k_, seqused_q_, seqused_k_;
  std::optional<std::string> dtype_, scale_, arch_, tensor_memory_, signal_, variants_;
  bool causal_ = false, deterministic_ = false, sink_ = false, dlse_ = false;
};

}  // namespace flashback::program
