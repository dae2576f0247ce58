#include "emulator/check/released.h"

#include <algorithm>

namespace flashback::emulator::checking {

void acquire(Threads& threads, LaneMask lanes, std::uint64_t to, std::uint32_t cluster,
             const Released& released, const Form& form) {
  for (const auto& [by, knowledge] : released) {
    const Scope scope = std::min(by.scope, form.scope);
    const bool reaches = by.cta == to || scope == Scope::kGpu ||
                         (scope == Scope::kCluster && by.cta / cluster == to / cluster);
    if (!reaches) {
      threads.acquire(lanes, knowledge.as(&Knowledge::unscoped, by.cta), false);
    } else if (form.of_shared) {
      threads.acquire(lanes, knowledge.as(&Knowledge::of_shared, by.cta), false);
    } else if (by.cta == to) {
      threads.acquire(lanes, knowledge, false);
    } else {
      Knowledge across;
      across.join_across(to, by.cta, knowledge);
      threads.acquire(lanes, across, false);
    }
  }
}

}  // namespace flashback::emulator::checking
