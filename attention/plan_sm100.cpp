// The plan of a backward pass on Blackwell: a CTA for each tile of keys, head and batch.
#include <numbers>

#include "attention/plan_parts.h"

namespace flashback {
namespace {

namespace blackwell = sm100::backward;

Workspace workspace_of(const Shape& shape, std::size_t padded_rows) {
  const std::size_t rows = static_cast<std::size_t>(shape.batch * shape.heads) * padded_rows;
  Workspace w;
  w.add("lse_log2", sizeof(float) * rows);  // [batch][heads][padded rows]
  w.add("delta", sizeof(float) * rows);
  w.add("dq_accum", sizeof(float) * rows * static_cast<std::size_t>(shape.head_dim));
  return w;
}

// The numbers that all three launches share.
struct Common {
  float *lse_log2, *delta, *dq_accum;
  float scale;
  std::int32_t heads, q_rows, k_rows, q_rows_padded;
  Dim3 q_grid, k_grid;  // a CTA for each tile, head and batch
};

Common common_of(const Problem& problem, const Kernel& kernel, const Workspace& workspace,
                 std::size_t padded_rows) {
  const Shape& shape = problem.shape;
  const auto y = static_cast<std::uint32_t>(shape.heads), z = static_cast<std::uint32_t>(shape.batch);
  return {.lse_log2 = pointer<float>(problem, workspace.part("lse_log2")),
          .delta = pointer<float>(problem, workspace.part("delta")),
          .dq_accum = pointer<float>(problem, workspace.part("dq_accum")),
          .scale = effective_scale(problem),
          .heads = static_cast<std::int32_t>(shape.heads),
          .q_rows = static_cast<std::int32_t>(shape.seqlen_q),
          .k_rows = static_cast<std::int32_t>(shape.seqlen_k),
          .q_rows_padded = static_cast<std::int32_t>(padded_rows),
          .q_grid = {tiles(shape.seqlen_q, kernel.tile_q), y, z},
          .k_grid = {tiles(shape.seqlen_k, kernel.tile_k), y, z}};
}

common::PreprocessParameters preprocess_parameters(const Tensors& t, const Common& c) {
  return {.out = view(t.out),
          .dout = view(t.dout),
          .lse = pointer<const float>(t.lse.data),
          .lse_batch_stride = t.lse.batch_stride,
          .lse_head_stride = t.lse.head_stride,
          .lse_log2 = c.lse_log2,
          .delta = c.delta,
          .dq_accum = c.dq_accum,
          .heads = c.heads,
          .q_rows = c.q_rows,
          .q_rows_padded = c.q_rows_padded};
}

blackwell::Parameters main_parameters(const Common& c) {
  return {.q = {},
          .k = {},
          .v = {},
          .dout = {},
          .dk = {},
          .dv = {},
          .lse_log2 = c.lse_log2,
          .delta = c.delta,
          .dq_accum = c.dq_accum,
          .scale = c.scale,
          .scale_log2 = static_cast<float>(c.scale * std::numbers::log2e),
          .q_rows = c.q_rows,
          .k_rows = c.k_rows,
          .q_rows_padded = c.q_rows_padded,
          .heads = c.heads};
}

common::PostprocessParameters postprocess_parameters(const Tensors& t, const Common& c) {
  return {.dq_accum = c.dq_accum,
          .dq = view(t.dq),
          .scale = c.scale,
          .heads = c.heads,
          .q_rows = c.q_rows,
          .q_rows_padded = c.q_rows_padded};
}

// Loads take a tile of rows; each compute group stores its half of the channels of dK and dV.
std::vector<PlannedMap> maps_of(const Problem& problem, const Kernel& kernel) {
  using P = blackwell::Parameters;
  const Shape& s = problem.shape;
  const Tensors& t = problem.tensors;
  const Box q_box = {kernel.head_dim, kernel.tile_q, Swizzle::k128},
            k_box = {kernel.head_dim, kernel.tile_k, Swizzle::k128},
            store_box = {blackwell::kBlockColumns, kernel.tile_k, Swizzle::k64};
  auto of_q = [&](const Tensor& tensor) { return tensor_map(tensor, problem, s.seqlen_q, s.heads, q_box); };
  auto of_k = [&](const Tensor& tensor, const Box& box) {
    return tensor_map(tensor, problem, s.seqlen_k, s.kv_heads, box);
  };
  return {{"q", offsetof(P, q), of_q(t.q)},
          {"k", offsetof(P, k), of_k(t.k, k_box)},
          {"v", offsetof(P, v), of_k(t.v, k_box)},
          {"dout", offsetof(P, dout), of_q(t.dout)},
          {"dk", offsetof(P, dk), of_k(t.dk, store_box)},
          {"dv", offsetof(P, dv), of_k(t.dv, store_box)}};
}

}  // namespace

Plan plan_sm100(const Problem& problem, const Kernel& kernel) {
  const Tensors& t = problem.tensors;
  const std::size_t padded_rows =
      std::size_t{tiles(problem.shape.seqlen_q, kernel.tile_q)} * static_cast<std::size_t>(kernel.tile_q);
  const Workspace workspace = workspace_of(problem.shape, padded_rows);
  const Common c = common_of(problem, kernel, workspace, padded_rows);
  return {
      .problem = problem,
      .kernel = &kernel,
      .workspace = workspace,
      .launches = {planned_launch("preprocess", kernel.preprocess, c.q_grid, preprocess_parameters(t, c)),
                   planned_launch("main", kernel.main, c.k_grid, main_parameters(c)),
                   planned_launch("postprocess", kernel.postprocess, c.q_grid, postprocess_parameters(t, c))},
      .maps = maps_of(problem, kernel)};
}

}  // namespace flashback
