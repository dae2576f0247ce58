// The generated pages docs/emulator/coverage.md and hardware.md.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flashback::emulator::testing {

// The opcodes of a module, in all its entries and functions.
std::set<std::string> opcodes_of(std::string_view ptx);

// Whether a Hopper GPU has it: an opcode, or a form of the instruction table.
bool is_of_hopper(std::string_view form);

// An opcode, and the experiments recorded on an H200 that have it, the plainest first.
struct UsedOpcode {
  std::string opcode;
  std::vector<std::string> equal, bounded;
};
// Of the PTX of our Hopper kernels, and of the programs of docs/emulator/third_party.md what Hopper has of
// theirs (listed_opcodes.txt).
std::vector<UsedOpcode> opcodes_to_compare(const std::string& source);

std::string coverage_page(const std::string& source);
std::string hardware_page(const std::string& source);

}  // namespace flashback::emulator::testing
