#include "attention/planner.h"

#include <algorithm>

namespace flashback {
namespace {

Needs needs_of(const Problem& p) {
  const Shape& s = p.shape;
  Needs n;
  n.queries = rows_in_memory(s.seqlen_q, s.batch, p.q_sequences) > 0;
  n.keys = rows_in_memory(s.seqlen_k, s.batch, p.k_sequences) > 0;
  n.ragged = p.q_sequences.ragged() || p.k_sequences.ragged();
  return n;
}

std::int32_t bound_of(std::int64_t bound) {
  return bound == kUnlimited || bound > (1 << 30) ? shared::kUnbounded : static_cast<std::int32_t>(bound);
}

shared::Sequences sequences_of(const Problem& problem, const Kernel& kernel) {
  const Shape& s = problem.shape;
  const auto side = [&](std::int64_t seqlen, const Sequences& sequences, int tile) {
    return shared::Side{
        .cu_seqlens = pointer<const std::int32_t>(sequences.cu_seqlens),
        .seqused = pointer<const std::int32_t>(sequences.seqused),
        .first_tile = nullptr,
        .rows = static_cast<std::int32_t>(seqlen),
        .tiles = 0,
        .all_tiles = static_cast<std::int32_t>(padded_tiles(seqlen, s.batch, sequences, tile))};
  };
  shared::Sequences all = {.q = side(s.seqlen_q, problem.q_sequences, kernel.tile_q),
                           .k = side(s.seqlen_k, problem.k_sequences, kernel.tile_k),
                           .batch = static_cast<std::int32_t>(s.batch),
                           .left = bound_of(problem.mask.left),
                           .right = bound_of(problem.mask.right)};
  if (problem.q_sequences.ragged() || problem.k_sequences.ragged()) return all;
  // All sequences are alike: what is in sight of one is known here.
  const shared::Sight sight = shared::sight_of(all, 0);
  const auto count = [&](shared::Side& of, const shared::Rows& rows, int tile) {
    of.tiles = shared::tiles_of(rows.count, tile);
    of.all_tiles = static_cast<std::int32_t>(s.batch * of.tiles);
  };
  count(all.q, sight.q, kernel.tile_q);
  count(all.k, sight.k, kernel.tile_k);
  return all;
}

common::View side_view(const Tensor& t, const Sequences& sequences) {
  common::View v = view(t);
  if (sequences.packed()) v.batch_stride = 0;
  return v;
}

}  // namespace

Planner::Planner(const Problem& problem, const Kernel& kernel, Plan* plan)
    : problem_(problem),
      kernel_(kernel),
      needs_(needs_of(problem)),
      scale_(effective_scale(problem)),
      sequences_(sequences_of(problem, kernel)),
      plan_(*plan) {
  plan_.problem = problem;
  plan_.kernel = &kernel;
  plan_.workspace = {};
  plan_.cleared = {};
  plan_.launches = {};
  plan_.maps = {};
}

void Planner::add_schedule_parts() {
  if (!needs_.ragged) return;
  const auto sequences = static_cast<std::size_t>(shape().batch + 1);
  sequences_.q.first_tile = q_first_tile_ = add_part<std::int32_t>("q_first_tile", sequences);
  sequences_.k.first_tile = k_first_tile_ = add_part<std::int32_t>("k_first_tile", sequences);
}

std::size_t Planner::query_tiles() const {
  return static_cast<std::size_t>(shape().heads) * static_cast<std::size_t>(sequences_.q.all_tiles);
}
std::size_t Planner::key_tiles() const {
  return static_cast<std::size_t>(shape().kv_heads) * static_cast<std::size_t>(sequences_.k.all_tiles);
}

void Planner::schedule() {
  if (!needs_.ragged) return;
  add("schedule", kernel_.schedule, {1, 1, 1},
      common::ScheduleParameters{.sequences = sequences_,
                                 .q_first_tile = q_first_tile_,
                                 .k_first_tile = k_first_tile_,
                                 .q_tile_rows = kernel_.tile_q,
                                 .k_tile_rows = kernel_.tile_k});
}

std::uint32_t Planner::ctas_in_memory(std::int64_t seqlen, const Sequences& sequences, int rows) const {
  const std::int64_t batches = sequences.packed() ? 1 : shape().batch;
  return static_cast<std::uint32_t>(batches * tiles(seqlen, rows));
}

std::int32_t Planner::section(int multiprocessors, std::int64_t tiles, std::int64_t heads) const {
  if (problem_.mask == Mask::kDense) return 1;
  const std::int64_t at_least_one = std::max(tiles, std::int64_t{1});
  const std::int64_t wanted = (2 * multiprocessors + at_least_one - 1) / at_least_one;
  // Of one size, as far as that goes: a last section of few items begins its longest one when all else is
  // done.
  const std::int64_t all = std::max(shape().batch * heads, std::int64_t{1});
  const std::int64_t sections = std::max((all + wanted / 2) / wanted, std::int64_t{1});
  return static_cast<std::int32_t>((all + sections - 1) / sections);
}

PlannedMap Planner::query_map(std::string_view name, std::size_t offset, const Tensor& tensor,
                              const Box& box) const {
  return {name, offset,
          sequence_map(tensor, problem_, problem_.q_sequences, shape().seqlen_q, shape().heads, box)};
}
PlannedMap Planner::key_map(std::string_view name, std::size_t offset, const Tensor& tensor,
                            const Box& box) const {
  return {name, offset,
          sequence_map(tensor, problem_, problem_.k_sequences, shape().seqlen_k, shape().kv_heads, box)};
}
common::View Planner::query_view(const Tensor& tensor) const {
  return side_view(tensor, problem_.q_sequences);
}
common::View Planner::key_view(const Tensor& tensor) const {
  return side_view(tensor, problem_.k_sequences);
}

}  // namespace flashback
