// All rows of all families, found by opcode.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/program/form.h"
#include "emulator/program/instruction_set.h"
#include "emulator/program/operand_pattern.h"

namespace flashback::emulator {

class InstructionTable {
 public:
  struct Entry {
    const Row* row;
    Form form;
    std::vector<OperandPattern> operands;
  };
  // A row whose form the opcode has.
  struct Candidate {
    const Entry* entry;
    std::vector<std::string_view> choices;
  };

  // Throws std::invalid_argument when a row is malformed.
  explicit InstructionTable(std::span<const std::span<const Row>> families);

  // In the order of the table; empty when no row has the opcode's form.
  const std::vector<Candidate>& find(std::string_view opcode);
  // Up to four forms that share the most with the opcode, in one line for a person; empty when nothing is
  // near.
  std::string nearest(std::string_view opcode) const;

 private:
  std::unordered_map<std::string_view, std::deque<Entry>> entries_;  // by first piece
  std::unordered_map<std::string_view, std::vector<Candidate>> found_;
};

}  // namespace flashback::emulator
