#include "program/problem_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <limits>

#include "program/arguments.h"
#include "program/failure.h"

namespace flashback::program {
namespace {

// No length, count or width that a kernel knows takes more than 31 bits; which are accepted is the library's
// to say.
constexpr std::int64_t kMostExtent = std::numeric_limits<std::int32_t>::max();

std::optional<std::int64_t> parse_extent(const char* argument, const std::optional<std::string>& text,
                                         std::int64_t least = 1) {
  if (!text) return {};
  return parse_whole(argument, *text, least, kMostExtent);
}

std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::vector<std::int32_t> parse_numbers(const char* argument, const std::optional<std::string>& list) {
  std::vector<std::int32_t> numbers;
  if (!list) return numbers;
  for (const std::string& item : items_of(*list)) {
    numbers.push_back(static_cast<std::int32_t>(
        parse_whole(fmt::format("the item \"{}\" of {}", item, argument), item, 0, kMostExtent)));
  }
  return numbers;
}

TensorMemory parse_tensor_memory(const std::string& argument, const std::string& text) {
  return parse_choice(argument, text, {TensorMemory::kAliased, TensorMemory::kSplit});
}

Signal parse_signal(const std::string& argument, const std::string& text) {
  return parse_choice(argument, text, {Signal::kCta, Signal::kWarp});
}

Variant parse_variant(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    refuse(fmt::format("--variants has the item \"{}\"; each must be TMEM/SIGNAL, such as split/warp", text));
  }
  return {parse_tensor_memory("the part before / of --variants", text.substr(0, slash)),
          parse_signal("the part after / of --variants", text.substr(slash + 1))};
}

}  // namespace

Shape with_defaults(const PartialShape& partial) {
  const std::int64_t heads = partial.heads.value_or(1), seqlen_q = partial.seqlen_q.value_or(128);
  return {.batch = partial.batch.value_or(1),
          .heads = heads,
          .kv_heads = partial.kv_heads.value_or(heads),
          .seqlen_q = seqlen_q,
          .seqlen_k = partial.seqlen_k.value_or(seqlen_q),
          .head_dim = partial.head_dim.value_or(64)};
}

std::string name(const Variant& variant) {
  return fmt::format("{}/{}", name(variant.tensor_memory), name(variant.signal));
}

void ProblemOptions::add_to(CLI::App& command) {
  const auto add = [&](const char* group, const char* name, const char* type,
                       std::optional<std::string>& value, const char* meaning) {
    command.add_option(name, value, meaning)->type_name(type)->group(group);
  };
  add("Shape", "--batch", "N", batch_, "Batches [1]");
  add("Shape", "--heads", "N", heads_, "Query heads [1]");
  add("Shape", "--kv-heads", "N", kv_heads_, "Key and value heads; must divide heads [heads]");
  add("Shape", "--seqlen-q", "N", seqlen_q_, "Query rows [128]");
  add("Shape", "--seqlen-k", "N", seqlen_k_, "Key rows [seqlen-q]");
  add("Shape", "--head-dim", "N", head_dim_, "Channels of a head [64]");
  add("Shape", "--cu-seqlens-q", "LIST", cu_seqlens_q_,
      "Packed sequences: where each starts among the query rows, and their end");
  add("Shape", "--cu-seqlens-k", "LIST", cu_seqlens_k_, "The same among the key rows");
  add("Shape", "--seqused-q", "LIST", seqused_q_, "Query rows of each sequence that take part [all]");
  add("Shape", "--seqused-k", "LIST", seqused_k_, "Key rows of each sequence that take part [all]");
  add("Shape", "--scale", "X", scale_, "Of the scores [1 / sqrt(head-dim)]");
  command.add_flag("--causal", causal_, "Query row i sees key rows j <= i + seqlen_k - seqlen_q")
      ->group("Shape");
  add("Shape", "--window", "LEFT,RIGHT", window_,
      "Keys seen before and behind where a row stands; -1: no bound [-1,-1]");
  command.add_flag("--sink", sink_, "A learnable score of each head that takes weight")->group("Shape");
  add("Kernel", "--dtype", "WORD", dtype_, "bf16 or fp16 [bf16]");
  add("Kernel", "--arch", "WORD", arch_, "sm100 or sm90 [sm100; on a GPU its own]");
  if (direction_ == Direction::kForward) return;
  command.add_flag("--dlse", dlse_, "A gradient of lse as well")->group("Shape");
  command.add_flag("--deterministic", deterministic_, "The same bits in every run on a GPU too")
      ->group("Kernel");
  add("Kernel", "--tmem", "WORD", tensor_memory_,
      "Where P and dS live in tensor memory: aliased or split [split]");
  add("Kernel", "--signal", "WORD", signal_, "How compute warps announce a store: cta or warp [warp]");
  add("Kernel", "--variants", "LIST", variants_, "Several TMEM/SIGNAL pairs, separated by commas");
}

PartialShape ProblemOptions::shape() const {
  const auto alone = [](const char* option, const std::optional<std::string>& value, const char* offsets,
                        const std::optional<std::string>& list) {
    if (!value || !list) return;
    refuse(fmt::format("{} is {} and {} is {}, which tells the rows of each sequence; leave {} out", option,
                       *value, offsets, *list, option));
  };
  alone("--seqlen-q", seqlen_q_, "--cu-seqlens-q", cu_seqlens_q_);
  alone("--seqlen-k", seqlen_k_, "--cu-seqlens-k", cu_seqlens_k_);
  alone("--batch", batch_, "--cu-seqlens-q", cu_seqlens_q_);
  alone("--batch", batch_, "--cu-seqlens-k", cu_seqlens_k_);
  return {.batch = parse_extent("--batch", batch_, 0),
          .heads = parse_extent("--heads", heads_),
          .kv_heads = parse_extent("--kv-heads", kv_heads_),
          .seqlen_q = parse_extent("--seqlen-q", seqlen_q_, 0),
          .seqlen_k = parse_extent("--seqlen-k", seqlen_k_, 0),
          .head_dim = parse_extent("--head-dim", head_dim_)};
}

Lengths ProblemOptions::lengths() const {
  return {parse_numbers("--cu-seqlens-q", cu_seqlens_q_), parse_numbers("--cu-seqlens-k", cu_seqlens_k_),
          parse_numbers("--seqused-q", seqused_q_), parse_numbers("--seqused-k", seqused_k_)};
}

Problem ProblemOptions::problem() const {
  Problem problem;
  problem.direction = direction_;
  problem.dtype = dtype();
  problem.shape = with_defaults(shape());
  if (cu_seqlens_q_) problem.shape.seqlen_q = 0;  // their end tells
  if (cu_seqlens_k_) problem.shape.seqlen_k = 0;
  problem.mask = mask();
  problem.scale = scale();
  problem.deterministic = deterministic_;
  const Lengths lengths = this->lengths();
  problem = with_lengths(problem, lengths);
  demand_lengths(lengths, problem.shape, {"--cu-seqlens-q", "--cu-seqlens-k", "--seqused-q", "--seqused-k"});
  constexpr Address kPresent = 16;  // bound to memory later
  problem.tensors = packed_tensors(problem.shape);
  if (sink_) problem.tensors.sink = kPresent;
  if (sink_ && direction_ == Direction::kBackward) problem.tensors.dsink = kPresent;
  if (dlse_) problem.tensors.dlse.data = kPresent;
  return problem;
}

Mask ProblemOptions::mask() const {
  Mask mask;
  if (window_) {
    const std::vector<std::string> bounds = items_of(*window_);
    if (bounds.size() != 2)
      refuse(fmt::format("--window is {}; it must be LEFT,RIGHT, such as 1024,0", *window_));
    mask.left = parse_whole("LEFT of --window", bounds[0], kUnlimited, kMostExtent);
    mask.right = parse_whole("RIGHT of --window", bounds[1], kUnlimited, kMostExtent);
  }
  if (causal_) mask.right = 0;
  return mask;
}

Dtype ProblemOptions::dtype() const {
  return dtype_ ? parse_choice("--dtype", *dtype_, {Dtype::kBf16, Dtype::kF16}) : Dtype::kBf16;
}

float ProblemOptions::scale() const {
  if (!scale_) return 0;
  const auto scale = static_cast<float>(parse_positive("--scale", *scale_));
  if (scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max()) return scale;
  refuse(fmt::format("--scale is {}; it must be a normal number of fp32, from 1.2e-38 to 3.4e38", *scale_));
}

std::optional<Arch> ProblemOptions::arch() const {
  if (!arch_) return {};
  return parse_choice("--arch", *arch_, {Arch::kSm100, Arch::kSm90});
}

std::vector<Variant> ProblemOptions::variants() const {
  if (!variants_) {
    Variant variant;
    if (tensor_memory_) variant.tensor_memory = parse_tensor_memory("--tmem", *tensor_memory_);
    if (signal_) variant.signal = parse_signal("--signal", *signal_);
    return {variant};
  }
  if (tensor_memory_ || signal_) {
    refuse(fmt::format(
        "--variants is {} and {} is given too; each variant names its own, so leave one of the two out",
        *variants_, tensor_memory_ ? "--tmem" : "--signal"));
  }
  std::vector<Variant> variants;
  for (const std::string& item : items_of(*variants_)) variants.push_back(parse_variant(item));
  return variants;
}

}  // namespace flashback::program
