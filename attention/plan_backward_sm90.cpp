// The plan of a backward pass on Hopper: persistent CTAs, one a multiprocessor, that take tiles of keys from
// a counter.
#include <algorithm>
#include <limits>
#include <numbers>

#include "attention/backward_planner.h"
#include "kernels/sm90/backward_wide/config.h"

namespace flashback {
namespace {

namespace hopper = sm90::backward;

// Tiles of keys of a sequence from which on pairs are faster: 8192 and 32768 keys, measured (docs/hopper.md).
constexpr int kDensePairs = 64, kCausalPairs = 256;

// Query heads of a work item under a mask. CTAs that go through the many heads of one key head drift apart
// there, and read more rows at a time than the L2 cache keeps. Measured (docs/log/hopper_backward.md).
constexpr std::int64_t kMostHeads = 8;
// In deterministic mode parts add one after another, and fewer heads make more parts: under a causal mask two
// heads and one from so many tiles of keys on, 4096 and 16384 keys, and from 2048 on eight parts or two
// heads.
constexpr int kOneHead = 128, kTwoHeads = 32, kEightParts = 16;

// Query tiles of an item, for fewer of which it is not worth while to zero and convert sums of parts.
constexpr std::int64_t kLeastTiles = 8;

// Of a section's queries, dO and dQ, measured (docs/log/hopper_backward_wide.md).
constexpr std::int64_t kSectionBytes = std::int64_t{64} << 20;

class HopperPlanner : BackwardPlanner {
 public:
  HopperPlanner(const Problem& problem, const Kernel& kernel, int multiprocessors, Plan* plan)
      : BackwardPlanner(problem, kernel, plan),
        multiprocessors_(multiprocessors),
        group_(static_cast<std::int32_t>(shape().heads / shape().kv_heads)),
        parts_(parts_of_group()) {
    stats_ = add_part<float>("stats", query_tiles() * hopper::kStatsFloats);  // [heads][tiles][...]
    dq_accum_ = add_part<float>("dq_accum", query_tiles() * dq_floats());     // the same
    next_ticket_ = add_part<std::int32_t>("next_ticket", 1);
    if (problem.deterministic) dq_turns_ = add_cleared_part<std::int32_t>("dq_turns", query_tiles());
    if (parts_ > 1) {
      const std::size_t sums = key_tiles() * static_cast<std::size_t>(hopper::kSumFloats);
      dk_accum_ = add_cleared_part<float>("dk_accum", sums);
      dv_accum_ = add_cleared_part<float>("dv_accum", sums);
      if (problem.deterministic) dk_turns_ = add_cleared_part<std::int32_t>("dk_turns", 2 * key_tiles());
    }
    add_shared_parts();
  }

  void add_launches() {
    schedule();
    const hopper::Parameters main = main_parameters();
    preprocess(stats_, stats_ ? stats_ + hopper::kQueryRows : nullptr, dq_accum_, next_ticket_);
    sink();
    if (needs_.queries && needs_.keys) {
      add_main(main);
      add_maps();
    }
    postprocess_queries(dq_accum_, scale_);
    if (parts_ > 1 || gaps_) {
      postprocess_keys("dk", tensors().dk, dk_accum_, scale_);
      postprocess_keys("dv", tensors().dv, dv_accum_, 1);
    }
  }

 private:
  // Whether CTAs share items of two tiles. Half the additions to dQ save energy, which is what long sequences
  // lack; items of twice the length cost more at their ends, under a causal mask more still.
  bool paired() const {
    const int least_tiles = problem_.mask == Mask::kDense ? kDensePairs : kCausalPairs;
    return !kernel_.pair.name.empty() && !problem_.deterministic && !needs_.ragged &&
           sequences_.k.tiles >= least_tiles && enough_heads() >= group_;
  }
  int ctas() const { return paired() ? 2 : 1; }

  // Query heads of an item with which there are items for all multiprocessors, or nearly so; of a causal
  // mask, whose items differ in length, for two rounds of them, unless parts wait for each other.
  std::int64_t enough_heads() const {
    const int rounds = problem_.mask == Mask::kCausal && !problem_.deterministic ? 2 : 1;
    const std::int64_t wanted = rounds * multiprocessors_;
    const auto items = static_cast<std::int64_t>(key_tiles());
    return std::max((items * group_ + wanted / 2) / wanted, std::int64_t{1});
  }

  // The most that suits the mask.
  std::int64_t most_heads() const {
    if (problem_.mask == Mask::kDense) return group_;
    if (problem_.mask != Mask::kCausal || !problem_.deterministic || needs_.ragged) return kMostHeads;
    const std::int64_t tiles = sequences_.k.tiles;
    if (tiles >= kOneHead) return 1;
    if (tiles >= kTwoHeads) return 2;
    return tiles >= kEightParts ? std::max(2, group_ / 8) : kMostHeads;
  }

  std::int32_t parts_of_group() const {
    // Tickets are numbers of 31 bits.
    const bool too_many = key_tiles() > (1u << 30) / static_cast<std::size_t>(group_);
    if (kernel_.head_dim != hopper::kHeadDim || paired() || too_many) return 1;
    std::int64_t heads = most_heads();
    // In deterministic mode bits may not depend on what a sequence is packed with.
    if (!problem_.deterministic || !needs_.ragged) {
      const std::int64_t tiles = sequences_.q.all_tiles / std::max(shape().batch, std::int64_t{1});  // of one
      heads = std::min(heads, std::max(enough_heads(), kLeastTiles / std::max(tiles, std::int64_t{1})));
    }
    return static_cast<std::int32_t>((group_ + heads - 1) / heads);
  }

  // Of a query tile.
  std::size_t dq_floats() const { return static_cast<std::size_t>(kernel_.tile_q * kernel_.head_dim); }

  void add_main(const hopper::Parameters& main) {
    const std::size_t workers = static_cast<std::size_t>(multiprocessors_ / ctas());
    const auto items = paired() ? static_cast<std::size_t>(items_of_head() * shape().batch * shape().kv_heads)
                                : key_tiles() * static_cast<std::size_t>(parts_);
    const auto grid =
        static_cast<std::uint32_t>(std::min(workers, items)) * static_cast<std::uint32_t>(ctas());
    add("main", paired() ? kernel_.pair : kernel_.main, {grid, 1, 1}, main);
    PlannedLaunch& launch = plan_.launches[plan_.launches.size() - 1];
    launch.cluster = {static_cast<std::uint32_t>(ctas()), 1, 1};
    // Turns are waited for, and the first items are not taken from the counter.
    launch.together = problem_.deterministic;
  }

  // Of sequences that are all alike.
  std::int64_t items_of_head() const { return (sequences_.k.tiles + ctas() - 1) / ctas(); }

  // Key tiles of a head that can run at once: they have tickets one after another. Of ragged sequences heads
  // come in between.
  std::int32_t rotation() const {
    if (!problem_.deterministic || problem_.mask != Mask::kDense || needs_.ragged) return 1;
    const std::int64_t tiles = sequences_.k.tiles;
    const std::int64_t blocks = std::max<std::int64_t>((tiles + multiprocessors_ - 1) / multiprocessors_, 1);
    const std::int64_t block = std::max<std::int64_t>((tiles + blocks - 1) / blocks, 1);
    const bool fits = block * (sequences_.q.tiles + 1) <= std::numeric_limits<std::int32_t>::max();
    return fits ? static_cast<std::int32_t>(block) : 1;
  }

  // At head dim 128 a section whose queries, dO and dQ are more than the L2 cache keeps is slower.
  std::int32_t heads_of_section() const {
    const std::int32_t heads = section(multiprocessors_ / ctas(), items_of_head(), shape().kv_heads * parts_);
    if (kernel_.head_dim == hopper::kHeadDim) return heads;
    const std::int64_t queries = shape().heads / shape().kv_heads * sequences_.q.tiles * kernel_.tile_q;
    const std::int64_t bytes = queries * kernel_.head_dim * (2 + 2 + 4);
    return static_cast<std::int32_t>(
        std::clamp(kSectionBytes / std::max(bytes, std::int64_t{1}), std::int64_t{1}, std::int64_t{heads}));
  }

  hopper::Parameters main_parameters() const {
    const bool wide = problem_.fp32_gradients && parts_ == 1;
    return {.q = {},
            .dout = {},
            .k = {},
            .v = {},
            .dk = {},
            .dv = {},
            .wide_dk = wide ? key_view(tensors().dk) : common::View{},
            .wide_dv = wide ? key_view(tensors().dv) : common::View{},
            .stats = stats_,
            .dq_accum = dq_accum_,
            .dk_accum = dk_accum_,
            .dv_accum = dv_accum_,
            .next_ticket = next_ticket_,
            .dq_turns = dq_turns_,
            .rotation = rotation(),
            .dk_turns = dk_turns_,
            .scale = scale_,
            .scale_log2 = static_cast<float>(scale_ * std::numbers::log2e),
            .kv_heads = static_cast<std::int32_t>(shape().kv_heads),
            .group = group_,
            .parts = parts_,
            .part_heads = (group_ + parts_ - 1) / parts_,
            .head_dim = static_cast<std::int32_t>(shape().head_dim),
            .accumulate = problem_.accumulate,
            .section = heads_of_section(),
            .sequences = sequences_};
  }

  void add_maps() {
    using P = hopper::Parameters;
    const Tensors& t = tensors();
    // A copy takes 64 channels; at head dim 128 gradients leave by 64 keys.
    const Box q_box = {tile::kRowElements, kernel_.tile_q, Swizzle::k128},
              k_box = {tile::kRowElements, kernel_.tile_k, Swizzle::k128};
    const bool wide = kernel_.head_dim > tile::kRowElements;
    const Box gradient_box = {tile::kRowElements, wide ? sm90::backward_wide::kGroupKeys : kernel_.tile_k,
                              Swizzle::k128};
    plan_.maps = {query_map("q", offsetof(P, q), t.q, q_box), key_map("k", offsetof(P, k), t.k, k_box),
                  key_map("v", offsetof(P, v), t.v, k_box),
                  query_map("dout", offsetof(P, dout), t.dout, q_box)};
    if (problem_.fp32_gradients || parts_ > 1) return;
    plan_.maps.push_back(key_map("dk", offsetof(P, dk), t.dk, gradient_box));
    plan_.maps.push_back(key_map("dv", offsetof(P, dv), t.dv, gradient_box));
  }

  const int multiprocessors_;
  const std::int32_t group_;  // query heads of a key/value head
  const std::int32_t parts_;  // in which they are worked on; their dK and dV are summed in global memory
  float *stats_, *dq_accum_, *dk_accum_ = nullptr, *dv_accum_ = nullptr;
  std::int32_t *next_ticket_, *dq_turns_ = nullptr, *dk_turns_ = nullptr;
};

}  // namespace

void plan_backward_sm90(const Problem& problem, const Kernel& kernel, int multiprocessors, Plan* plan) {
  HopperPlanner(problem, kernel, multiprocessors, plan).add_launches();
}

}  // namespace flashback
