// THE table: one row for each compiled main kernel. Dispatch, `flashback list`, the tests and the docs read
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/problem.h"

namespace flashback {

// An `extern "C"` kernel of an image.
struct Entry {
  std::string name;                    // backward_sm100_d64_bf16_causal_split_warp
  const KernelImage* image = nullptr;  // null: this build does not have it
  std::uint32_t threads = 0;
  std::uint32_t shared_bytes = 0;
};

// What a kernel takes beyond the plain problem: as many key/value heads as query heads, padded sequences of
// at least one row, no gradient but those of q, k and v, in their type.
struct Features {
  bool grouped_queries = false;  // kv_heads may be a divisor of heads
  bool empty = false;            // no batch, or sequences without rows
  bool ragged = false;           // cu_seqlens, seqused
  bool dlse = false;             // the gradient of lse
  bool sink = false;
  bool fp32_gradients = false;  // and accumulate
  bool deterministic = false;
};

struct Kernel {
  Arch arch;
  Direction direction;
  std::int64_t head_dim;        // of the tiles
  std::int64_t least_head_dim;  // multiples of kHeadDimStep from here to head_dim, filled up with zeros
  Dtype dtype;
  MaskKind mask;
  // Which variant it is; nothing where the architecture has no tensor memory and its kernel no variants.
  std::optional<TensorMemory> tensor_memory;
  std::optional<Signal> signal;
  Features features;

  int tile_q, tile_k;  // rows of queries and of keys that one step of a CTA covers
  Entry schedule, main;
  Entry preprocess, sink, postprocess;  // of the backward pass; else without a name
  Entry pair = {};  // main for CTAs in pairs, which suits long sequences; without a name where there is none
  Entry unseen;     // of the forward pass; else without a name
};

inline constexpr std::int64_t kHeadDimStep = 8;

std::span<const Kernel> kernel_table();

// The row that answers, or null.
const Kernel* find_kernel(Arch arch, const Problem& problem);

// Whether the row takes the variant: its own, or the default where it has none.
bool takes_head_dim(const Kernel& kernel, std::int64_t head_dim);
bool takes(const Kernel& kernel, TensorMemory memory);
bool takes(const Kernel& kernel, Signal signal);

}  // namespace flashback
