// What the plans of all architectures are made of.
#pragma once

#include <bit>

#include "attention/plan.h"

namespace flashback {

// The rows of the kernel table by pass and architecture.
void plan_backward_sm100(const Problem& problem, const Kernel& kernel, Plan* plan);
void plan_backward_sm90(const Problem& problem, const Kernel& kernel, int multiprocessors, Plan* plan);
void plan_forward(const Problem& problem, const Kernel& kernel, int multiprocessors, Plan* plan);

inline std::uint32_t tiles(std::int64_t rows, int tile) {
  return static_cast<std::uint32_t>((rows + tile - 1) / tile);
}

template <typename T>
T* pointer(Address address) {
  return std::bit_cast<T*>(address);
}

// A part of the workspace of a bound problem, else null.
template <typename T>
T* pointer(const Problem& problem, const WorkspacePart& part) {
  return pointer<T>(problem.workspace ? problem.workspace + part.offset : 0);
}

common::View view(const Tensor& tensor);

struct Box {
  std::int64_t channels;
  int rows;
  Swizzle swizzle;
};
// The tensor map of a tensor of `rows` rows and `heads` heads, (channel, row, head, batch) and a fifth
// dimension of the rows' stride: rows end where a sequence ends, whichever it is. A ragged tensor starts all
// its rows earlier, and the fifth coordinate brings a sequence's end from the end of the map's rows to where
// it is (work.cuh says how); else it is 0.
TensorMapRequest sequence_map(const Tensor& tensor, const Problem& problem, const Sequences& sequences,
                              std::int64_t rows, std::int64_t heads, const Box& box);

}  // namespace flashback
