// Instructions into a draft: opcodes matched to rows, operands bound to registers, displacements and
// negations that a step cannot hold computed before it.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/program/draft.h"
#include "emulator/program/instruction_set.h"
#include "emulator/program/instruction_table.h"
#include "emulator/program/memory_layout.h"
#include "emulator/program/module_memory.h"
#include "emulator/program/names.h"
#include "emulator/program/operand_binder.h"
#include "emulator/ptx/module.h"

namespace flashback::emulator {

// Thrown inside the decoder only; decode() turns it into DecodeResult::error.
class DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_at_line(std::uint32_t line, const std::string& sentence);

class Emitter {
 public:
  struct Guard {
    Register predicate = kNone;  // kNone: executed always
    bool negated = false;
  };
  // A branch whose label is not known yet.
  struct Branch {
    std::size_t step;
    std::string_view label;
    Names::Scope scope;
  };

  Emitter(std::span<const std::span<const Row>> families, const ModuleMemory& memory)
      : table_(families), binder_(&draft, &names, &layout, &memory) {}

  void emit(std::string_view opcode, const std::vector<ptx::Operand>& operands, std::uint32_t line,
            Guard guard);
  // Whether the table has a row of this form.
  bool knows(std::string_view opcode) { return !table_.find(opcode).empty(); }
  Register new_register(int bytes) { return binder_.new_register(bytes); }

  Draft draft;
  Names names;
  MemoryLayout layout;
  std::vector<std::string> forms;  // distinct opcodes as written
  std::vector<Branch> branches;
  bool communicates = false;  // Program::communicates
  bool cancels_launches = false;
  Program::SourceLine source;  // of what is emitted next

 private:
  void prepare(const Preparation& preparation, std::uint32_t line);
  Body select(std::string_view opcode, const InstructionTable::Candidate& candidate, BoundOperands* bound);
  void append(std::string_view opcode, const BoundOperands& bound, Body body, std::uint32_t line,
              Guard guard);
  std::uint16_t form_number(std::string_view opcode);

  InstructionTable table_;
  OperandBinder binder_;
  std::unordered_map<std::string_view, std::uint16_t> form_numbers_;
};

}  // namespace flashback::emulator
