// A cluster: CTAs that run at the same time and reach each other's shared memory. The unit that the grid
// starts; a launch without clusters has clusters of one CTA. Its CTAs take turns on one host thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/machine/cluster_barrier.h"
#include "emulator/machine/cluster_memory.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/launch_state.h"
#include "emulator/machine/reduction_order.h"

namespace flashback::emulator {

class ClusterQueue;

class Cluster {
 public:
  // ---- for bodies and units

  std::uint32_t size() const { return size_; }  // CTAs
  Cta& cta(std::uint32_t rank) { return *ctas_[rank]; }
  ClusterBarrier barrier;

  // ---- for its CTAs

  void reduce(Address address, std::span<const float> values);
  void take_turn();
  // The cluster that would start next does not; the index of its first CTA. Nothing when all have started.
  std::optional<Dim3> cancel_next();

  // ---- for the grid

  enum class Progress { kMoved, kStuck, kFinished };

  // `number`: in start order; `place`: whose turn its reductions wait for; `queue`: where the next ones wait.
  void start(const LaunchState& launch, std::uint64_t number, std::uint64_t place, ClusterQueue* queue);
  // Lets each warp run until it waits; then, if none moved, lets one piece of asynchronous work take effect.
  Progress sweep();
  // No warp can go on: faults with one sentence a warp, where it is and what it waits for.
  [[noreturn]] void fault_stuck() const;
  // After the last sweep, and after a fault.
  void end();
  // What is left of the reductions since the last call.
  ReductionLog take_log();
  std::uint64_t executed() const;
  std::uint64_t matrix_instructions() const;

 private:
  template <bool kObserved>
  Progress sweep_in_order();
  template <bool kObserved>
  Progress sweep_at_random();
  bool all_exited() const;
  void run_out();
  Cta& any_cta();

  const LaunchState* launch_ = nullptr;
  ClusterQueue* queue_ = nullptr;
  std::uint64_t place_ = 0;
  std::uint32_t size_ = 0;
  ClusterMemory memory_;
  std::vector<std::unique_ptr<Cta>> ctas_;  // by rank; those beyond `size_` are of earlier launches
  ReductionLog log_;
  std::uint32_t idle_sweeps_ = 0;
};

}  // namespace flashback::emulator
