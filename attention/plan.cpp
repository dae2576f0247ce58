#include "attention/plan.h"

#include <algorithm>

#include "attention/plan_parts.h"

namespace flashback {

void Workspace::add(std::string_view name, std::size_t part_bytes) {
  parts.push_back({name, bytes, part_bytes});
  bytes += (part_bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

const WorkspacePart& Workspace::part(std::string_view name) const {
  return *std::find_if(parts.begin(), parts.end(), [&](const WorkspacePart& p) { return p.name == name; });
}

common::View view(const Tensor& t) {
  return {pointer<void>(t.data), t.batch_stride, t.row_stride, t.head_stride};
}

// (channel, row, head, batch), fastest first. The stride of an axis of size 1 is never used but must be
// legal: that of packed channels is.
TensorMapRequest tensor_map(const Tensor& t, const Problem& problem, std::int64_t rows, std::int64_t heads,
                            const Box& box) {
  const Shape& shape = problem.shape;
  auto bytes = [&](std::int64_t size, std::int64_t stride) {
    return static_cast<std::uint64_t>(2 * (size == 1 ? shape.head_dim : stride));
  };
  auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  return {
      .base = t.data,
      .type = problem.dtype == Dtype::kBf16 ? ElementType::kBf16 : ElementType::kF16,
      .swizzle = box.swizzle,
      .rank = 4,
      .dims = {count(shape.head_dim), count(rows), count(heads), count(shape.batch)},
      .strides = {bytes(rows, t.row_stride), bytes(heads, t.head_stride), bytes(shape.batch, t.batch_stride)},
      .box = {static_cast<std::uint32_t>(box.channels), static_cast<std::uint32_t>(box.rows), 1, 1}};
}

PlannedLaunch planned_launch(std::string_view step, const Entry& entry, Dim3 grid,
                             const EntryParameters& parameters) {
  return {.step = step,
          .entry = &entry,
          .grid = grid,
          .cluster = {},
          .block = {entry.threads},
          .shared_bytes = entry.shared_bytes,
          .parameters = parameters};
}

Plan plan_backward(const Problem& problem, const Kernel& kernel, const Target& target) {
  return target.arch == Arch::kSm90 ? plan_sm90(problem, kernel, target.multiprocessors)
                                    : plan_sm100(problem, kernel);
}

}  // namespace flashback
