// The generated pages docs/emulator/coverage.md and hardware.md.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flashback::emulator::testing {

// The opcodes of a module, in all its entries and functions.
std::set<std::string> opcodes_of(std::string_view ptx);

// Of the PTX of our Hopper kernels: opcode, and the experiments recorded on an H200 that have it, the
// plainest first.
struct KernelOpcode {
  std::string opcode;
  std::vector<std::string> equal, bounded;
};
std::vector<KernelOpcode> kernel_opcodes(const std::string& source);

std::string coverage_page(const std::string& source);
std::string hardware_page(const std::string& source);

}  // namespace flashback::emulator::testing
