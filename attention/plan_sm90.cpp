// The plan of a backward pass on Hopper: persistent CTAs, one a multiprocessor, that take tiles of keys from
// a counter.
#include <algorithm>
#include <numbers>

#include "attention/plan_parts.h"

namespace flashback {
namespace {

namespace hopper = sm90::backward;

Workspace workspace_of(const Shape& shape, std::size_t q_tiles) {
  const std::size_t all_tiles = static_cast<std::size_t>(shape.batch * shape.heads) * q_tiles;
  Workspace w;
  w.add("stats", sizeof(float) * all_tiles * hopper::kStatsFloats);  // [batch][heads][tiles][...]
  w.add("dq_accum", sizeof(float) * all_tiles * hopper::kDqFloats);  // the same
  w.add("next_ticket", sizeof(std::int32_t));
  return w;
}

hopper::StatsParameters stats_parameters(const Tensors& t, const hopper::Parameters& main, float* stats) {
  return {.out = view(t.out),
          .dout = view(t.dout),
          .lse = pointer<const float>(t.lse.data),
          .lse_batch_stride = t.lse.batch_stride,
          .lse_head_stride = t.lse.head_stride,
          .stats = stats,
          .dq_accum = main.dq_accum,
          .next_ticket = main.next_ticket,
          .q_rows = main.q_rows};
}

// Key/value heads whose tiles take turns. Under a causal mask tiles differ in length: enough of them for two
// rounds of all CTAs, so that the long ones come early and the short ones fill the gaps. Else one head after
// the other, whose Q and dO then stay in the L2 cache.
std::int32_t section_of(const Problem& problem, std::int64_t k_tiles, int multiprocessors) {
  if (problem.mask == Mask::kDense) return 1;
  const std::int64_t wanted = (2 * multiprocessors + k_tiles - 1) / k_tiles;
  return static_cast<std::int32_t>(std::min(wanted, problem.shape.batch * problem.shape.kv_heads));
}

hopper::Parameters main_parameters(const Problem& problem, const Kernel& kernel, const Workspace& workspace,
                                   int multiprocessors) {
  const Shape& s = problem.shape;
  const float scale = effective_scale(problem);
  const auto k_tiles = static_cast<std::int32_t>(tiles(s.seqlen_k, kernel.tile_k));
  return {.q = {},
          .dout = {},
          .k = {},
          .v = {},
          .dk = {},
          .dv = {},
          .stats = pointer<const float>(problem, workspace.part("stats")),
          .dq_accum = pointer<float>(problem, workspace.part("dq_accum")),
          .next_ticket = pointer<std::int32_t>(problem, workspace.part("next_ticket")),
          .scale = scale,
          .scale_log2 = static_cast<float>(scale * std::numbers::log2e),
          .q_rows = static_cast<std::int32_t>(s.seqlen_q),
          .k_rows = static_cast<std::int32_t>(s.seqlen_k),
          .q_tiles = static_cast<std::int32_t>(tiles(s.seqlen_q, kernel.tile_q)),
          .k_tiles = k_tiles,
          .batch = static_cast<std::int32_t>(s.batch),
          .heads = static_cast<std::int32_t>(s.heads),
          .kv_heads = static_cast<std::int32_t>(s.kv_heads),
          .group = static_cast<std::int32_t>(s.heads / s.kv_heads),
          .section = section_of(problem, k_tiles, multiprocessors)};
}

hopper::ConvertParameters convert_parameters(const Tensors& t, const hopper::Parameters& main) {
  return {.dq_accum = main.dq_accum, .dq = view(t.dq), .scale = main.scale, .q_rows = main.q_rows};
}

std::vector<PlannedMap> maps_of(const Problem& problem, const Kernel& kernel) {
  using P = hopper::Parameters;
  const Shape& s = problem.shape;
  const Tensors& t = problem.tensors;
  auto of_q = [&](const Tensor& tensor) {
    return tensor_map(tensor, problem, s.seqlen_q, s.heads, {kernel.head_dim, kernel.tile_q, Swizzle::k128});
  };
  auto of_k = [&](const Tensor& tensor) {
    return tensor_map(tensor, problem, s.seqlen_k, s.kv_heads,
                      {kernel.head_dim, kernel.tile_k, Swizzle::k128});
  };
  return {{"q", offsetof(P, q), of_q(t.q)},    {"k", offsetof(P, k), of_k(t.k)},
          {"v", offsetof(P, v), of_k(t.v)},    {"dout", offsetof(P, dout), of_q(t.dout)},
          {"dk", offsetof(P, dk), of_k(t.dk)}, {"dv", offsetof(P, dv), of_k(t.dv)}};
}

}  // namespace

Plan plan_sm90(const Problem& problem, const Kernel& kernel, int multiprocessors) {
  const Shape& s = problem.shape;
  const Tensors& t = problem.tensors;
  const Dim3 q_grid = {tiles(s.seqlen_q, kernel.tile_q), static_cast<std::uint32_t>(s.heads),
                       static_cast<std::uint32_t>(s.batch)};
  const Workspace workspace = workspace_of(s, q_grid.x);
  const hopper::Parameters main = main_parameters(problem, kernel, workspace, multiprocessors);
  const std::int64_t items = std::int64_t{main.k_tiles} * s.kv_heads * s.batch;
  const Dim3 grid = {static_cast<std::uint32_t>(std::min<std::int64_t>(multiprocessors, items))};
  float* const stats = pointer<float>(problem, workspace.part("stats"));
  return {
      .problem = problem,
      .kernel = &kernel,
      .workspace = workspace,
      .launches = {planned_launch("preprocess", kernel.preprocess, q_grid, stats_parameters(t, main, stats)),
                   planned_launch("main", kernel.main, grid, main),
                   planned_launch("postprocess", kernel.postprocess, q_grid, convert_parameters(t, main))},
      .maps = maps_of(problem, kernel)};
}

}  // namespace flashback
