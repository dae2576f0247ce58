// Order by memory itself: a strong read that sees a strong write acquires what it released, directly or by
// the fences around them. ISA 8.8 (release and acquire patterns).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "emulator/check/cta_state.h"
#include "emulator/check/form.h"

namespace flashback::emulator::checking {

class MemoryOrder {
 public:
  void begin_launch() { locations_.clear(); }
  // Lanes of the warp access `address` strongly; shared addresses of a CTA are its own.
  void access(CtaState& state, WarpState& warp, LaneMask lanes, std::uint64_t address, const Form& form,
              bool reads, bool writes);
  void fence(WarpState& warp, LaneMask lanes, const Form& form);

 private:
  // What the writes to a place have released, by the number of their CTA.
  using Released = std::map<std::uint64_t, Knowledge>;
  static void acquire(std::uint64_t cta, WarpState& warp, LaneMask lanes, const Released& released);

  std::unordered_map<std::uint64_t, Released> locations_;
};

}  // namespace flashback::emulator::checking
