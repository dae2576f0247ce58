// The options that say which backward pass is meant; `run` and `plan` share them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attention/problem.h"

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
  void add_to(CLI::App& command);

  // Each throws a Failure when a value breaks its rule.
  PartialShape shape() const;
  Dtype dtype() const;
  Mask mask() const { return causal_ ? Mask::kCausal : Mask::kDense; }
  float scale() const;  // 0: 1 / sqrt(head_dim)
  std::optional<Arch> arch() const;
  std::vector<Variant> variants() const;  // at least one

 private:
  std::optional<std::string> batch_, heads_, kv_heads_, seqlen_q_, seqlen_k_, head_dim_;
  std::optional<std::string> dtype_, scale_, arch_, tensor_memory_, signal_, variants_;
  bool causal_ = false;
};

}  // namespace flashback::program
