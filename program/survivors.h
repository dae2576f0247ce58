// Which pieces of synchronisation our backward kernels could do without, and why each is there all the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "emulator/check/mutation.h"

namespace flashback::program {

struct Survivor {
  Arch arch;
  std::string_view entry;    // a part of the entry's name; empty: all
  std::string_view section;  // of the kernel: `//@ name` in its text
  std::string_view opcode;   // how it begins
  std::string_view change;
  int count;  // in each entry, at most
  std::string_view reason;
};

// Matches survivors of one entry with their explanations.
class SurvivorReasons {
 public:
  SurvivorReasons(Arch arch, std::string_view entry);
  // The reason why the program is right without it; nothing when none is known, or as many are explained
  // already.
  std::optional<std::string> explain(const emulator::checking::Mutation& mutation);

 private:
  std::vector<Survivor> left_;  // count: those still to come
};

}  // namespace flashback::program
