// The steps of a backward pass that all architectures share, around the main kernel of each: count the tiles
// of ragged sequences, statistics of query rows, the sink, and gradients on their way to their tensors.
#pragma once

#include "attention/plan_parts.h"

namespace flashback {

// What the problem asks of the kernels beside dq, dk, dv of whole sequences.
struct Needs {
  bool queries, keys;  // there are rows of either kind in memory
  bool ragged;         // sequences differ: their tiles are counted on the device
  bool gaps;           // rows of k may be out of sight: no CTA writes their dK and dV
};

// A plan in the making. The workspace is complete before the first launch is planned.
class Planner {
 public:
  Planner(const Problem& problem, const Kernel& kernel);

 protected:
  const Shape& shape() const { return problem_.shape; }
  const Tensors& tensors() const { return problem_.tensors; }

  // Parts of 4-byte numbers.
  void add_part(std::string_view name, std::size_t numbers) { plan_.workspace.add(name, 4 * numbers); }
  // The same, zero before the first launch.
  void add_cleared_part(std::string_view name, std::size_t numbers);
  // Those of the shared steps, and the places of tiles that they tell the others.
  void add_shared_parts();
  // Of a bound problem, where the part exists; else null.
  template <typename T>
  T* part(std::string_view name) const {
    const WorkspacePart* found = plan_.workspace.find(name);
    return found ? pointer<T>(problem_, *found) : nullptr;
  }

  // Tiles of all sequences and heads.
  std::size_t query_tiles() const;
  std::size_t key_tiles() const;

  // A launch without CTAs is none.
  void add(std::string_view step, const Entry& entry, Dim3 grid, const EntryParameters& parameters);
  void schedule();
  // Where the statistics go, and a number that becomes zero, or null.
  void preprocess(float* lse_log2, float* delta, std::int32_t* zero);
  void sink();
  // A gradient; `accum` null: the main kernel has written what is in sight.
  void postprocess_queries(const float* accum, float scale);
  void postprocess_keys(std::string_view step, const Tensor& gradient, const float* accum, float scale);

  PlannedMap query_map(std::string_view name, std::size_t offset, const Tensor& tensor, const Box& box) const;
  PlannedMap key_map(std::string_view name, std::size_t offset, const Tensor& tensor, const Box& box) const;
  // fp32 gradients of k and v as a kernel finds them.
  common::View key_view(const Tensor& tensor) const;

  const Problem& problem_;
  const Kernel& kernel_;
  const Needs needs_;
  const float scale_;  // of the scores
  shared::Sequences sequences_;
  Plan plan_;

 private:
  void postprocess(std::string_view step, const Tensor& gradient, bool of_keys, const float* accum,
                   float scale);
};

}  // namespace flashback
