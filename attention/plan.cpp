#include "attention/plan.h"

#include <algorithm>

#include "attention/plan_parts.h"

namespace flashback {

const WorkspacePart& Workspace::add(std::string_view name, std::size_t part_bytes) {
  parts.push_back({name, bytes, part_bytes});
  bytes += (part_bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  return parts[parts.size() - 1];
}

const WorkspacePart& Workspace::part(std::string_view name) const {
  return *std::find_if(parts.begin(), parts.end(), [&](const WorkspacePart& p) { return p.name == name; });
}

common::View view(const Tensor& t) {
  return {pointer<void>(t.data), t.batch_stride, t.row_stride, t.head_stride};
}

TensorMapRequest sequence_map(const Tensor& t, const Problem& problem, const Sequences& sequences,
                              std::int64_t rows, std::int64_t heads, const Box& box) {
  const std::int64_t channels = problem.shape.head_dim, batch = sequences.packed() ? 1 : problem.shape.batch;
  // The stride of an axis of size 1 is never used but must be legal: that of packed channels is.
  const auto bytes = [&](std::int64_t size, std::int64_t stride) {
    return static_cast<std::uint64_t>(2 * (size == 1 ? channels : stride));
  };
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const std::uint64_t row = bytes(rows, t.row_stride);
  TensorMapRequest map = {
      .base = t.data,
      .type = problem.dtype == Dtype::kBf16 ? ElementType::kBf16 : ElementType::kF16,
      .swizzle = box.swizzle,
      .rank = 5,
      .dims = {count(channels), count(rows), count(heads), count(batch), 1},
      .strides = {row, bytes(heads, t.head_stride), bytes(batch, t.batch_stride), row},
      .box = {static_cast<std::uint32_t>(box.channels), static_cast<std::uint32_t>(box.rows), 1, 1, 1}};
  if (!sequences.ragged()) return map;
  map.dims[4] = count(rows) + 1;
  if (t.data != 0) map.base -= count(rows) * row;
  return map;
}

void plan_with(const Kernel& kernel, const Problem& problem, const Target& target, Plan* plan) {
  if (problem.direction == Direction::kForward) {
    plan_forward(problem, kernel, target.multiprocessors, plan);
  } else if (target.arch == Arch::kSm90) {
    plan_backward_sm90(problem, kernel, target.multiprocessors, plan);
  } else {
    plan_backward_sm100(problem, kernel, plan);
  }
}

}  // namespace flashback
