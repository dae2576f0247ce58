// The plan of a forward pass: persistent CTAs, one a multiprocessor, that take tiles of queries from a
// counter; and, where the problem has them, the rows that none of these tiles holds.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "attention/planner.h"

namespace flashback {
namespace {

class ForwardPlanner : Planner {
 public:
  ForwardPlanner(const Problem& problem, const Kernel& kernel, int multiprocessors, Plan* plan)
      : Planner(problem, kernel, plan),
        multiprocessors_(multiprocessors),
        next_ticket_(add_cleared_part<std::int32_t>("next_ticket", 1)) {
    add_schedule_parts();
  }

  void add_launches() {
    schedule();
    if (needs_.queries && needs_.keys) {
      const auto ctas = std::min(static_cast<std::size_t>(multiprocessors_), query_tiles());
      add("main", kernel_.main, {static_cast<std::uint32_t>(ctas), 1, 1}, main_parameters());
      add_maps();
    }
    if (hides_queries()) unseen();
  }

 private:
  // Rows of q may see no key.
  bool hides_queries() const {
    return needs_.ragged || shared::sight_of(sequences_, 0).q.count < shape().seqlen_q;
  }

  common::RowOutput lse() const {
    const LseTensor& t = tensors().lse;
    return {pointer<float>(t.data), problem_.q_sequences.packed() ? 0 : t.batch_stride, t.head_stride};
  }

  common::ForwardParameters main_parameters() const {
    return {.q = {},
            .k = {},
            .v = {},
            .out = query_view(tensors().out),
            .lse = lse(),
            .sink = pointer<const float>(tensors().sink),
            .next_ticket = next_ticket_,
            .scale_log2 = static_cast<float>(std::fabs(scale_) * std::numbers::log2e),
            .negate_q = scale_ < 0,
            .heads = static_cast<std::int32_t>(shape().heads),
            .group = static_cast<std::int32_t>(shape().heads / shape().kv_heads),
            .head_dim = static_cast<std::int32_t>(shape().head_dim),
            .section = section(multiprocessors_, sequences_.q.tiles, shape().heads),
            .sequences = sequences_};
  }

  void unseen() {
    add("unseen", kernel_.unseen,
        {ctas_in_memory(shape().seqlen_q, problem_.q_sequences, common::kUnseenRows),
         static_cast<std::uint32_t>(shape().heads), 1},
        common::UnseenParameters{.out = query_view(tensors().out),
                                 .lse = lse(),
                                 .sink = pointer<const float>(tensors().sink),
                                 .sequences = sequences_,
                                 .head_dim = static_cast<std::int32_t>(shape().head_dim),
                                 .leave_unused_rows = problem_.leave_unused_rows});
  }

  // A load takes 64 channels.
  void add_maps() {
    using P = common::ForwardParameters;
    const Tensors& t = tensors();
    const Box q_box = {tile::kRowElements, kernel_.tile_q, Swizzle::k128},
              k_box = {tile::kRowElements, kernel_.tile_k, Swizzle::k128};
    plan_.maps = {query_map("q", offsetof(P, q), t.q, q_box), key_map("k", offsetof(P, k), t.k, k_box),
                  key_map("v", offsetof(P, v), t.v, k_box)};
  }

  const int multiprocessors_;
  std::int32_t* const next_ticket_;
};

}  // namespace

void plan_forward(const Problem& problem, const Kernel& kernel, int multiprocessors, Plan* plan) {
  ForwardPlanner(problem, kernel, multiprocessors, plan).add_launches();
}

}  // namespace flashback
