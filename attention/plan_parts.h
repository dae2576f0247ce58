// What the plans of all architectures are made of.
#pragma once

#include <bit>

#include "attention/plan.h"

namespace flashback {

// The rows of the kernel table by pass and architecture.
Plan plan_backward_sm100(const Problem& problem, const Kernel& kernel);
Plan plan_backward_sm90(const Problem& problem, const Kernel& kernel, int multiprocessors);
Plan plan_forward(const Problem& problem, const Kernel& kernel, int multiprocessors);

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
// The tensor map of a tensor of `rows` rows and `heads` heads.
TensorMapRequest tensor_map(const Tensor& tensor, const Problem& problem, std::int64_t rows,
                            std::int64_t heads, const Box& box);

// The same for rows that end where a sequence ends, whichever it is: with a fifth dimension of the rows'
// stride. A ragged tensor starts all its rows earlier, and the fifth coordinate brings a sequence's end from
// the end of the map's rows to where it is (work.cuh says how); else it is 0.
TensorMapRequest sequence_map(const Tensor& tensor, const Problem& problem, const Sequences& sequences,
                              std::int64_t rows, std::int64_t heads, const Box& box);

PlannedLaunch planned_launch(std::string_view step, const Entry& entry, Dim3 grid,
                             const EntryParameters& parameters);

}  // namespace flashback
