// What the assembler makes of a program: which instructions are there at all, and in which order.
#pragma once

#include <memory>

#include "emulator/program/program.h"
#include "emulator/timing/recording.h"

namespace flashback::emulator::timing {

// Throws std::invalid_argument that names the first opcode without a cost.
std::shared_ptr<const Kernel> assemble(const Program& program);

}  // namespace flashback::emulator::timing
