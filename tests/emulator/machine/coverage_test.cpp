// Every row of the instruction table is reached by a text in instructions/.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "emulator/program/instruction_table.h"
#include "emulator/ptx/parser.h"
#include "tests/emulator/machine/instruction_case.h"

namespace flashback::emulator::testing {
namespace {

// The opcodes of all texts.
std::set<std::string> tested_opcodes() {
  std::set<std::string> opcodes;
  namespace fs = std::filesystem;
  for (const fs::path& path :
       fs::directory_iterator(FLASHBACK_SOURCE_DIR "/tests/emulator/machine/instructions")) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const ptx::ParseResult parsed = ptx::parse(module_of(parse_case(text.str()), "sm_100a", false));
    EXPECT_EQ(parsed.error, "") << path;
    if (!parsed.module) continue;
    for (const ptx::Statement& statement : parsed.module->entries.at(0).body) {
      if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
        opcodes.emplace(instruction->opcode);
        if (first_piece(instruction->opcode) != "call") continue;
        for (const ptx::Operand& operand : instruction->operands)
          opcodes.insert(fmt::format("call.{}", operand.name));
      }
    }
  }
  return opcodes;
}

TEST(Coverage, EachRowHasAText) {
  const std::span<const std::span<const Row>> families = instruction_families();
  InstructionTable table(families);
  std::set<const Row*> reached;
  const std::set<std::string> opcodes = tested_opcodes();
  for (const std::string& opcode : opcodes) {
    for (const InstructionTable::Candidate& candidate : table.find(opcode))
      reached.insert(candidate.entry->row);
  }
  for (std::span<const Row> family : families) {
    for (const Row& row : family) {
      // The tensor core, and its commits to several CTAs: units/tensor_core_test.cpp and cta_pair_test.cpp.
      if (row.form.find("tcgen05.mma") != row.form.npos) continue;
      if (row.form.find("tcgen05.commit") != row.form.npos && row.form.find(".multicast") != row.form.npos)
        continue;
      // Whatever takes a tensor map: units/tensor_copy_test.cpp makes some.
      if (row.form.find(".tensor") != row.form.npos) continue;
      if (row.form.find("tensormap") != row.form.npos) continue;
      EXPECT_TRUE(reached.count(&row)) << "no text has an instruction of the form " << row.form;
    }
  }
}

}  // namespace
}  // namespace flashback::emulator::testing
