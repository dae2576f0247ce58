// Which pieces of synchronisation our kernels could do without, and why each is there all the same.
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
  std::string_view entry;    // parts of the entry's name, each a word; empty: all
  std::string_view section;  // of the kernel: `//@ name` in its text
  std::string_view opcode;   // how it begins
  std::string_view change;
  int count;  // in each entry, at most
  std::string_view reason;
};

// Matches survivors of one kernel after the other with their explanations.
class SurvivorReasons {
 public:
  SurvivorReasons();
  void begin_kernel(Arch arch, std::string_view entry);
  // The reason why the kernel is right without it; nothing when none is known, or as many are explained
  // already.
  std::optional<std::string> explain(const emulator::checking::Mutation& mutation);
  // Explanations, or numbers of them, that no kernel so far had a use for, a sentence each. What is said of
  // survivors must be true of the kernels as they are.
  std::vector<std::string> stale() const;

 private:
  struct Use {
    int left = 0;  // of this kernel
    int most = 0;  // that a kernel had a use for
  };
  std::vector<Use> uses_;  // of the explanations, in their order
};

}  // namespace flashback::program
