#include "emulator/check/memory_order.h"

namespace flashback::emulator::checking {

void MemoryOrder::access(CtaState& state, WarpState& warp, LaneMask lanes, std::uint64_t address,
                         const Form& form, bool reads, bool writes) {
  Released& here = locations_[address];
  if (reads) {
    if (form.acquire) acquire(state.number, warp, lanes, here);
    for (const auto& [cta, knowledge] : here) warp.seen.join_across(state.number, cta, knowledge);
  }
  if (!writes) return;
  if (form.release) {
    warp.threads.release(lanes, &here[state.number], false);
  } else if (warp.has_release_fence) {
    here[state.number].join(warp.at_release_fence);
  }
}

void MemoryOrder::acquire(std::uint64_t cta, WarpState& warp, LaneMask lanes, const Released& released) {
  Knowledge all;
  for (const auto& [from, knowledge] : released) all.join_across(cta, from, knowledge);
  warp.threads.acquire(lanes, all, false);
}

void MemoryOrder::fence(WarpState& warp, LaneMask lanes, const Form& form) {
  if (form.acquire) warp.threads.acquire(lanes, warp.seen, false);
  if (!form.release) return;
  warp.threads.release(lanes, &warp.at_release_fence, false);
  warp.has_release_fence = true;
}

}  // namespace flashback::emulator::checking
