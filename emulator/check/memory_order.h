// Order by memory itself: a strong read that sees a strong write acquires what it released, directly or by
// the fences around them. ISA 8.8 (release and acquire patterns).
#pragma once

#include <cstdint>
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
  static void fence(CtaState& state, WarpState& warp, LaneMask lanes, const Form& form);

 private:
  std::unordered_map<std::uint64_t, Released> locations_;
};

}  // namespace flashback::emulator::checking
