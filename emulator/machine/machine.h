// The machine from outside: launch an entry of a loaded module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "device/device.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/global_memory.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator {

// When asynchronous work (TMA, tensor core, bulk stores, TMEM loads and stores) takes effect.
enum class Completion { kEager, kLazy, kRandom };

struct Schedule {
  Completion completion = Completion::kEager;
  std::uint64_t seed =
      0;  // of kRandom, of the CTA start order and of the order in which reductions take effect
  bool shuffle_ctas = false;  // start CTAs in a seeded order instead of ascending
  std::uint32_t slice = 0;    // instructions before a warp yields; 0: a generous default (spin loops exist)
};

struct MachineOptions {
  Arch arch = Arch::kSm100;
  int threads = 0;  // host threads over the CTAs; 0: one for each core. Never changes a result
  Schedule schedule;
  Observer* observer = nullptr;  // implies one host thread
  std::function<void(std::string_view)>
      print;  // takes what a launch has printed at its end; without it nobody does
};

struct Statistics {  // of all launches so far
  std::uint64_t warp_instructions = 0, matrix_instructions = 0, ctas = 0;
};

class LoadedModule;

class Machine {
 public:
  explicit Machine(const MachineOptions& options);
  ~Machine();
  // Entry, order, registers and memory of the launch as CUDA has them; `memory` is what it may touch beyond
  // the variables of its own module. Faults become Code::kDevice with their sentence.
  Status launch(LoadedModule& module, const Launch& launch, const GlobalMemory& memory);
  FaultKind fault_kind() const;  // of the last launch that ended with Code::kDevice
  Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flashback::emulator
