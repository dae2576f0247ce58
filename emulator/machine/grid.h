// Runs all clusters of a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/machine/cluster.h"
#include "emulator/machine/launch_state.h"

namespace flashback::emulator {

// Clusters of earlier launches, kept for their memory.
using ClusterPool = std::vector<std::unique_ptr<Cluster>>;

// How many CTAs of this launch a multiprocessor holds at once: by threads, shared memory and CTA slots.
std::uint32_t resident_ctas(const LaunchState& launch);
// How many clusters the GPU holds at once.
std::uint64_t resident_clusters(const LaunchState& launch);

struct GridTotals {
  std::uint64_t warp_instructions = 0, matrix_instructions = 0, ctas = 0;
};

// Runs the launch to its end on up to `threads` host threads. A program whose clusters communicate runs on
// one, its resident clusters taking turns. Throws the Fault of the cluster that started first among those
// that failed.
GridTotals run_grid(LaunchState& launch, int threads, ClusterPool& pool);

}  // namespace flashback::emulator
