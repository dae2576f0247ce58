// What a kernel with clocks noted, as the emulator's pictures draw it.
#pragma once

#include <vector>

#include "bench/clocks/pass.h"
#include "emulator/trace/trace.h"

namespace flashback::clocks {

// Warps alone have clocks. What a wait is for, `predicted` knows, of the same entry; a unit's work is drawn
// from the request to the end of the wait for it.
emulator::trace::Run timeline_of(const ClockedPass& pass, const std::vector<std::vector<Stamp>>& stamps,
                                 const emulator::trace::Run& predicted);

}  // namespace flashback::clocks
