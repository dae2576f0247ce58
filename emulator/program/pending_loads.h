// Which steps may find a tcgen05.ld unfinished. Such a load owes its registers until its wait, or until one
// of them is used: the hardware interlocks the register, so compilers move uses above the wait.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/program/draft.h"
#include "emulator/program/flow.h"

namespace flashback::emulator {

// The steps between which a load may be unfinished: its registers keep their slots from `first` to `last`.
struct LoadSpan {
  std::uint32_t load;
  std::uint32_t first, last;
};

// Sets Step::touches_pending_load of every step that reads or writes a register of a load that may be
// unfinished there.
std::vector<LoadSpan> mark_pending_loads(Draft* draft, const Flow& flow);

}  // namespace flashback::emulator
