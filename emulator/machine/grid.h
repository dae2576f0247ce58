// Runs all CTAs of a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/machine/cta.h"
#include "emulator/machine/launch_state.h"

namespace flashback::emulator {

// CTAs of earlier launches, kept for their memory.
using CtaPool = std::vector<std::unique_ptr<Cta>>;

// How many CTAs of this launch a multiprocessor holds at once: by threads, shared memory and CTA slots.
std::uint32_t resident_ctas(const LaunchState& launch);

struct GridTotals {
  std::uint64_t warp_instructions = 0, matrix_instructions = 0, ctas = 0;
};

// Runs the launch to its end on up to `threads` host threads. A program whose CTAs communicate runs on one,
// its resident CTAs taking turns. Throws the Fault of the CTA that started first among those that failed.
GridTotals run_grid(LaunchState& launch, int threads, CtaPool& pool);

}  // namespace flashback::emulator
