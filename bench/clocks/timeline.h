// What a kernel with clocks noted, as the emulator's pictures draw it.
#pragma once

#include <vector>

#include "bench/clocks/pass.h"
#include "emulator/trace/trace.h"

namespace flashback::clocks {

// Warps alone have clocks. What a wait is for, `predicted` knows, of the same entry. A unit's work is drawn
// where the warp that asked for it waits for it: from the begin of its section to the end of the wait.
emulator::trace::Run timeline_of(const std::vector<Place>& places,
                                 const std::vector<std::vector<Stamp>>& stamps,
                                 const emulator::trace::Run& predicted);

}  // namespace flashback::clocks
