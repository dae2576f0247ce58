// Virtual registers -> slots of the register file; the finished steps, presets and lists of the program.
#pragma once

#include <vector>

#include "emulator/program/draft.h"
#include "emulator/program/flow.h"
#include "emulator/program/pending_registers.h"

namespace flashback::emulator {

void allocate(const Draft& draft, const Flow& flow, const std::vector<PendingSpan>& spans, Program* program);

}  // namespace flashback::emulator
