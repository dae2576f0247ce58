#include "emulator/check/memory_order.h"

#include <algorithm>

namespace flashback::emulator::checking {

void MemoryOrder::access(CtaState& state, WarpState& warp, LaneMask lanes, std::uint64_t address,
                         const Form& form, bool reads, bool writes) {
  Released& here = locations_[address];
  if (reads) {
    if (form.acquire) acquire(warp.threads, lanes, state.number, state.cluster(), here, form);
    for (const auto& [by, knowledge] : here)
      warp.seen[{by.cta, std::min(by.scope, form.scope)}].join(knowledge);
  }
  if (!writes) return;
  if (form.release) {
    warp.threads.release(lanes, &here[{state.number, form.scope}], false);
    return;
  }
  for (const auto& [scope, knowledge] : warp.at_release_fence)
    here[{state.number, std::min(scope, form.scope)}].join(knowledge);
}

void MemoryOrder::fence(CtaState& state, WarpState& warp, LaneMask lanes, const Form& form) {
  if (form.acquire) acquire(warp.threads, lanes, state.number, state.cluster(), warp.seen, form);
  if (form.release) warp.threads.release(lanes, &warp.at_release_fence[form.scope], false);
}

}  // namespace flashback::emulator::checking
