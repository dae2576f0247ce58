// Syntax -> a program the machine runs: opcodes matched to rows, names to places in the register file, labels
// to steps.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "emulator/program/instruction_set.h"
#include "emulator/program/module_memory.h"
#include "emulator/program/program.h"
#include "emulator/ptx/module.h"

namespace flashback::emulator {

struct DecodeResult {
  std::unique_ptr<Program> program;  // null when `error` says something
  std::string error;                 // names the PTX line and the opcode
};

// `memory` holds the variables of `module`, and goes on doing so as long as the program may run.
DecodeResult decode(const ptx::Module& module, const ModuleMemory& memory, std::string_view entry,
                    std::span<const std::span<const Row>> families);

}  // namespace flashback::emulator
