#include "attention/plan.h"

#include <fmt/format.h>

#include <bit>
#include <numbers>

namespace flashback {
namespace {

namespace blackwell = sm100::backward;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::uint32_t tiles(std::int64_t rows, int tile) {
  return static_cast<std::uint32_t>((rows + tile - 1) / tile);
}

std::size_t padded_rows(std::int64_t rows, const Kernel& kernel) {
  return round_up(static_cast<std::size_t>(rows), static_cast<std::size_t>(kernel.tile_q));
}

WorkspaceLayout layout(const Shape& shape, std::size_t rows) {
  const std::size_t row_bytes = sizeof(float) * static_cast<std::size_t>(shape.batch * shape.heads) * rows;
  WorkspaceLayout w{.lse_log2 = {"lse_log2", 0, row_bytes},
                    .delta = {"delta", 0, row_bytes},
                    .dq_accum = {"dq_accum", 0, row_bytes * static_cast<std::size_t>(shape.head_dim)}};
  for (WorkspacePart* part : {&w.lse_log2, &w.delta, &w.dq_accum}) {
    part->offset = w.bytes;
    w.bytes = round_up(w.bytes + part->bytes, kWorkspaceAlignment);
  }
  return w;
}

template <typename T>
T* pointer(Address address) {
  return std::bit_cast<T*>(address);
}

common::View view(const Tensor& t) {
  return {pointer<void>(t.data), t.batch_stride, t.row_stride, t.head_stride};
}

// (channel, row, head, batch), fastest first. The stride of an axis of size 1 is never used but must be
// legal: that of packed channels is.
TensorMapRequest tensor_map(const Tensor& t, const Problem& problem, std::int64_t rows, std::int64_t heads,
                            std::int64_t box_channels, int box_rows, Swizzle swizzle) {
  const Shape& shape = problem.shape;
  auto bytes = [&](std::int64_t size, std::int64_t stride) {
    return static_cast<std::uint64_t>(2 * (size == 1 ? shape.head_dim : stride));
  };
  auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  return {
      .base = t.data,
      .type = problem.dtype == Dtype::kBf16 ? ElementType::kBf16 : ElementType::kF16,
      .swizzle = swizzle,
      .rank = 4,
      .dims = {count(shape.head_dim), count(rows), count(heads), count(shape.batch)},
      .strides = {bytes(rows, t.row_stride), bytes(heads, t.head_stride), bytes(shape.batch, t.batch_stride)},
      .box = {static_cast<std::uint32_t>(box_channels), static_cast<std::uint32_t>(box_rows), 1, 1}};
}

// The numbers that all three launches share.
struct Common {
  float *lse_log2, *delta, *dq_accum;
  float scale;
  std::int32_t heads, q_rows, k_rows, q_rows_padded;
  Dim3 q_grid, k_grid;  // a CTA for each tile, head and batch
};

Common common_of(const Problem& problem, const Kernel& kernel, const WorkspaceLayout& workspace) {
  const Shape& shape = problem.shape;
  auto part = [&](const WorkspacePart& p) {
    return pointer<float>(problem.workspace ? problem.workspace + p.offset : 0);
  };
  const auto y = static_cast<std::uint32_t>(shape.heads), z = static_cast<std::uint32_t>(shape.batch);
  return {.lse_log2 = part(workspace.lse_log2),
          .delta = part(workspace.delta),
          .dq_accum = part(workspace.dq_accum),
          .scale = effective_scale(problem),
          .heads = static_cast<std::int32_t>(shape.heads),
          .q_rows = static_cast<std::int32_t>(shape.seqlen_q),
          .k_rows = static_cast<std::int32_t>(shape.seqlen_k),
          .q_rows_padded = static_cast<std::int32_t>(padded_rows(shape.seqlen_q, kernel)),
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
std::array<PlannedMap, 6> maps_of(const Problem& problem, const Kernel& kernel) {
  using P = blackwell::Parameters;
  const Shape& s = problem.shape;
  const Tensors& t = problem.tensors;
  auto q_load = [&](const Tensor& tensor) {
    return tensor_map(tensor, problem, s.seqlen_q, s.heads, kernel.head_dim, kernel.tile_q, Swizzle::k128);
  };
  auto k_load = [&](const Tensor& tensor) {
    return tensor_map(tensor, problem, s.seqlen_k, s.kv_heads, kernel.head_dim, kernel.tile_k, Swizzle::k128);
  };
  auto k_store = [&](const Tensor& tensor) {
    return tensor_map(tensor, problem, s.seqlen_k, s.kv_heads, blackwell::kBlockColumns, kernel.tile_k,
                      Swizzle::k64);
  };
  return {{{"q", offsetof(P, q), q_load(t.q)},
           {"k", offsetof(P, k), k_load(t.k)},
           {"v", offsetof(P, v), k_load(t.v)},
           {"dout", offsetof(P, dout), q_load(t.dout)},
           {"dk", offsetof(P, dk), k_store(t.dk)},
           {"dv", offsetof(P, dv), k_store(t.dv)}}};
}

}  // namespace

Plan plan_backward(const Problem& problem, const Kernel& kernel) {
  const Tensors& t = problem.tensors;
  const WorkspaceLayout workspace = layout(problem.shape, padded_rows(problem.shape.seqlen_q, kernel));
  const Common c = common_of(problem, kernel, workspace);
  auto launch = [](std::string_view step, const Entry& entry, Dim3 grid, const auto& parameters) {
    return PlannedLaunch{.step = step,
                         .entry = &entry,
                         .grid = grid,
                         .cluster = {},
                         .block = {entry.threads},
                         .shared_bytes = entry.shared_bytes,
                         .parameters = parameters};
  };
  return {.problem = problem,
          .kernel = &kernel,
          .workspace = workspace,
          .launches = {launch("preprocess", kernel.preprocess, c.q_grid, preprocess_parameters(t, c)),
                       launch("main", kernel.main, c.k_grid, main_parameters(c)),
                       launch("postprocess", kernel.postprocess, c.q_grid, postprocess_parameters(t, c))},
          .maps = maps_of(problem, kernel)};
}

}  // namespace flashback
