// Programs with one piece of synchronisation missing or weaker: what a checker is measured by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flashback::emulator::checking {

struct Mutation {
  std::uint32_t line = 0;   // of the text, from 1
  std::string section;      // of the kernel: the last mark `//@ name` before it; empty before the first
  std::string instruction;  // as it stands there
  std::string change;       // "dropped", "waits for the other parity", ...
  std::size_t begin = 0, bytes = 0;
  std::string replacement;
};

// All mutations of an entry of `ptx`, in the order of the text. Empty when there is no such entry.
std::vector<Mutation> mutations(std::string_view ptx, std::string_view entry);
std::string mutated(std::string_view ptx, const Mutation& mutation);

}  // namespace flashback::emulator::checking
