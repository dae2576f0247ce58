#include "attention/plan.h"

#include <algorithm>

#include "attention/plan_parts.h"

namespace flashback {

void Workspace::add(std::string_view name, std::size_t part_bytes) {
  parts.push_back({name, bytes, part_bytes});
  bytes += (part_bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

const WorkspacePart* Workspace::find(std::string_view name) const {
  const auto part =
      std::find_if(parts.begin(), parts.end(), [&](const WorkspacePart& p) { return p.name == name; });
  return part == parts.end() ? nullptr : &*part;
}
const WorkspacePart& Workspace::part(std::string_view name) const {
  return *find(name);
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

TensorMapRequest sequence_map(const Tensor& t, const Problem& problem, const Sequences& sequences,
                              std::int64_t rows, std::int64_t heads, const Box& box) {
  Problem unbatched = problem;
  if (sequences.packed()) unbatched.shape.batch = 1;
  TensorMapRequest map = tensor_map(t, unbatched, rows, heads, box);
  map.rank = 5;
  map.strides[3] = map.strides[0];
  map.dims[4] = map.box[4] = 1;
  if (!sequences.ragged()) return map;
  map.dims[4] = static_cast<std::uint64_t>(rows) + 1;
  if (t.data != 0) map.base -= static_cast<std::uint64_t>(rows) * map.strides[0];
  return map;
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

Plan plan_of(const Problem& problem, const Kernel& kernel, const Target& target) {
  if (problem.direction == Direction::kForward) return plan_forward(problem, kernel, target.multiprocessors);
  return target.arch == Arch::kSm90 ? plan_backward_sm90(problem, kernel, target.multiprocessors)
                                    : plan_backward_sm100(problem, kernel);
}

}  // namespace flashback
