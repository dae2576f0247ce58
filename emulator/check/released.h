// What threads of a cluster or grid have released at one place, and what an acquire there gets of it. ISA 8.5
// (scopes), 8.8 (release and acquire patterns).
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "emulator/check/form.h"
#include "emulator/check/threads.h"

namespace flashback::emulator::checking {

struct ReleasedBy {
  std::uint64_t cta = 0;  // its number
  Scope scope = Scope::kCta;
  auto operator<=>(const ReleasedBy&) const = default;
};
using Released = std::map<ReleasedBy, Knowledge>;

// Lanes of CTA `to`, one of clusters of `cluster` CTAs, acquire as `form` says, which is not relaxed.
void acquire(Threads& threads, LaneMask lanes, std::uint64_t to, std::uint32_t cluster,
             const Released& released, const Form& form);

}  // namespace flashback::emulator::checking
