#include "program/mutation_problems.h"

#include "attention/kernel_table.h"

namespace flashback::program {
namespace {

// Some tiles are seen whole, others cut on either side; of the forward pass two in a row where a kernel can
// have so many, by some of its warpgroups only.
Mask window_of(Arch arch, Direction direction) {
  if (direction == Direction::kForward) return {.left = arch == Arch::kSm100 ? 408 : 372, .right = 159};
  return {.left = arch == Arch::kSm100 ? 170 : 400, .right = 50};
}

Problem with_shape(Problem problem, std::int64_t heads, std::int64_t kv_heads, std::int64_t rows,
                   std::int64_t keys) {
  problem.shape.batch = 1;
  problem.shape.heads = heads;
  problem.shape.kv_heads = kv_heads;
  problem.shape.seqlen_q = rows;
  problem.shape.seqlen_k = keys;
  problem.tensors = packed_tensors(problem.shape);
  return problem;
}

// Long items, four of them a CTA, whose scores differ so much that O is rescaled; and short ones with a
// negative scale, for which the kernel for sm_90a negates the queries in shared memory. That kernel waits for
// the stage of an item's first K where the item before has as many tiles of keys as the ring has places,
// four; after one of three, where a warpgroup without rows hands tiles back. There the first keys of a window
// lie so that 64 rows see two tiles in part.
std::vector<Problem> forward_problems(Arch arch, const Problem& chosen) {
  const bool blackwell = arch == Arch::kSm100, window = kind_of(chosen.mask) == MaskKind::kWindow;
  Problem short_items = with_shape(chosen, 10, 10, 64, 100);
  short_items.scale = -effective_scale(chosen);
  std::vector<Problem> problems = {short_items};
  const auto add_long_items = [&](std::int64_t rows, std::int64_t keys) {
    problems.push_back(with_shape(chosen, 4, 2, rows, keys));
    problems.back().scale = 8 * effective_scale(chosen);
  };
  if (window) {
    add_long_items(400, 744);
    if (!blackwell) add_long_items(200, 400);
  } else if (blackwell) {
    add_long_items(300, 400);
  } else {
    add_long_items(200, 300);
    add_long_items(200, 400);
  }
  return problems;
}

Problem in_turns(Problem problem) {
  problem.deterministic = true;
  return problem;
}

// Rings come round after three query tiles in one CTA, on sm_90a after four key tiles that some query sees: a
// window leaves fewer of them, so that it takes two heads. Then the same where heads share keys and sums have
// a fixed order: the kernels' other ways. On sm_90a one tile of keys is a part of the heads for each of the
// two CTAs.
std::vector<Problem> backward_problems(Arch arch, const Problem& chosen) {
  const MaskKind mask = kind_of(chosen.mask);
  if (arch == Arch::kSm90) {
    const int heads = mask == MaskKind::kWindow ? 2 : 1;
    return {with_shape(chosen, heads, heads, 256, 1024),
            in_turns(with_shape(chosen, 2 * heads, heads, 256, 1024)),
            in_turns(with_shape(chosen, 8, 1, 256, 128))};
  }
  // Without a mask every key tile has three query tiles; under one of both bounds only some have.
  const bool dense = mask == MaskKind::kDense;
  return {with_shape(chosen, 1, 1, 384, dense ? 128 : 384),
          in_turns(with_shape(chosen, 2, 1, 384, dense ? 256 : 384))};
}

Problem problem_of(const Kernel& kernel) {
  Problem problem;
  problem.direction = kernel.direction;
  problem.dtype = kernel.dtype;
  problem.shape.head_dim = kernel.head_dim;
  problem.mask = kernel.mask == MaskKind::kDense    ? Mask::kDense
                 : kernel.mask == MaskKind::kCausal ? Mask::kCausal
                                                    : window_of(kernel.arch, kernel.direction);
  problem.tensor_memory = kernel.tensor_memory.value_or(problem.tensor_memory);
  problem.signal = kernel.signal.value_or(problem.signal);
  return problem;
}

}  // namespace

std::vector<Problem> mutation_problems(Arch arch, const Problem& chosen) {
  return chosen.direction == Direction::kForward ? forward_problems(arch, chosen)
                                                 : backward_problems(arch, chosen);
}

std::vector<ShippedKernel> shipped_kernels() {
  std::vector<ShippedKernel> kernels;
  for (const Kernel& kernel : kernel_table()) {
    const Problem problem = problem_of(kernel);
    const std::vector<Problem> problems = mutation_problems(kernel.arch, problem);
    kernels.push_back({kernel.arch, MutatedEntry::kPlanned, problems});
    if (kernel.pair.name.empty()) continue;
    // Pairs know no turns. Of two heads the one's items that a mask cuts come before the other's. Items of
    // fewer query tiles than the ring has places, and of more.
    const std::vector<Problem> of_pairs = {with_shape(problem, 2, 2, 256, 512),
                                           with_shape(problem, 2, 2, 384, 512)};
    kernels.push_back({kernel.arch, MutatedEntry::kPair, of_pairs});
  }
  return kernels;
}

}  // namespace flashback::program
