// What the plans of both passes are made of: parts of the workspace, launches, tensor maps, and the count of
// the tiles of ragged sequences.
#pragma once

#include "attention/plan_parts.h"

namespace flashback {

struct Needs {
  bool queries, keys;  // there are rows of either kind in memory
  bool ragged;         // sequences differ: their tiles are counted on the device
};

// A plan in the making. The workspace is complete before the first launch is planned.
class Planner {
 public:
  Planner(const Problem& problem, const Kernel& kernel, Plan* plan);

 protected:
  const Shape& shape() const { return problem_.shape; }
  const Tensors& tensors() const { return problem_.tensors; }

  // Parts of 4-byte numbers. Their place, where the problem is bound; else null.
  template <typename T>
  T* add_part(std::string_view name, std::size_t numbers) {
    static_assert(sizeof(T) == 4);
    return pointer<T>(problem_, plan_.workspace.add(name, 4 * numbers));
  }
  // The same, zero before the first launch.
  template <typename T>
  T* add_cleared_part(std::string_view name, std::size_t numbers) {
    T* const place = add_part<T>(name, numbers);
    plan_.cleared.push_back(plan_.workspace.parts[plan_.workspace.parts.size() - 1]);
    return place;
  }
  // Those of ragged sequences, which other launches are told.
  void add_schedule_parts();

  // Tiles of all sequences and heads.
  std::size_t query_tiles() const;
  std::size_t key_tiles() const;

  // A launch without CTAs is none.
  template <class Parameters>
  void add(std::string_view step, const Entry& entry, Dim3 grid, const Parameters& parameters) {
    if (grid.x == 0 || grid.y == 0) return;
    PlannedLaunch& launch = plan_.launches.add();
    launch.step = step;
    launch.entry = &entry;
    launch.grid = grid;
    launch.block = {entry.threads};
    launch.shared_bytes = entry.shared_bytes;
    launch.parameters = parameters;
  }
  void schedule();
  // CTAs in x of a launch over all rows in memory, `rows` each.
  std::uint32_t ctas_in_memory(std::int64_t seqlen, const Sequences& sequences, int rows) const;
  // For how many heads of all sequences persistent CTAs take turns, where each has so many tiles. Under a
  // mask tiles differ in length: enough heads for two rounds of all CTAs, so that the long ones come early
  // and the short ones fill the gaps. Else one head after the other, whose rows then stay in the L2 cache.
  std::int32_t section(int multiprocessors, std::int64_t tiles, std::int64_t heads) const;

  PlannedMap query_map(std::string_view name, std::size_t offset, const Tensor& tensor, const Box& box) const;
  PlannedMap key_map(std::string_view name, std::size_t offset, const Tensor& tensor, const Box& box) const;
  // As the small kernels find it.
  common::View query_view(const Tensor& tensor) const;
  common::View key_view(const Tensor& tensor) const;

  const Problem& problem_;
  const Kernel& kernel_;
  const Needs needs_;
  const float scale_;  // of the scores
  shared::Sequences sequences_;
  Plan& plan_;

 private:
  std::int32_t *q_first_tile_ = nullptr, *k_first_tile_ = nullptr;
};

}  // namespace flashback
