#include "emulator/machine/named_barriers.h"

#include <fmt/format.h>

#include "emulator/machine/fault.h"

namespace flashback::emulator {

void NamedBarriers::reset(std::uint32_t live_warps) {
  barriers_.fill({});
  live_warps_ = live_warps;
}

void NamedBarriers::complete_if_full(Barrier& barrier) {
  const std::uint32_t expected = barrier.whole_cta ? 32 * live_warps_ : barrier.expected;
  if (barrier.arrived == 0 || barrier.arrived < expected) return;
  barrier.votes = {barrier.arrived, barrier.trues};
  barrier.arrived = barrier.trues = barrier.expected = 0;
  barrier.whole_cta = false;
  ++barrier.generation;
}

std::uint32_t NamedBarriers::arrive(std::uint32_t id, std::uint32_t threads, std::uint32_t trues) {
  if (id >= kCount) throw Misuse(fmt::format("barrier {}; there are barriers 0 to {}", id, kCount - 1));
  if (threads % 32 != 0) {
    throw Misuse(fmt::format("barrier {} for {} threads; the count must be a multiple of 32", id, threads));
  }
  Barrier& barrier = barriers_[id];
  const std::uint32_t expected = threads == 0 ? 32 * live_warps_ : threads;
  if (barrier.arrived == 0) {
    barrier.expected = expected;
    barrier.whole_cta = threads == 0;
  } else if (barrier.expected != expected) {
    throw Misuse(fmt::format("barrier {} for {} threads, which others have joined for {}", id, expected,
                             barrier.expected));
  }
  const std::uint32_t generation = barrier.generation;
  barrier.arrived += 32;
  barrier.trues += trues;
  complete_if_full(barrier);
  return generation;
}

void NamedBarriers::warp_exited() {
  --live_warps_;
  for (Barrier& barrier : barriers_) {
    if (barrier.whole_cta) {
      barrier.expected = 32 * live_warps_;
      complete_if_full(barrier);
    }
  }
}

std::string NamedBarriers::describe(std::uint32_t id) const {
  return fmt::format("{} of {} threads have arrived", barriers_[id].arrived, barriers_[id].expected);
}

}  // namespace flashback::emulator
