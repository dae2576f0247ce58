// The machine from outside: load PTX, launch an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "device/device.h"
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

// Ranges of host memory that a program may touch as global memory.
class GlobalMemory {
 public:
  struct Range {
    Address begin = 0, end = 0;
    bool holds(Address address, std::size_t bytes) const {
      return address >= begin && bytes <= end - begin && address - begin <= end - begin - bytes;
    }
  };

  virtual ~GlobalMemory() = default;
  // The registered range that holds the byte at `address`; an empty one when none does.
  virtual Range range_of(Address address) const = 0;
  // True when [address, address + bytes) lies within one registered range.
  bool contains(Address address, std::size_t bytes) const { return range_of(address).holds(address, bytes); }
};

struct MachineOptions {
  Arch arch = Arch::kSm100;
  int threads = 0;  // host threads over the CTAs; 0: one for each core. Never changes a result
  Schedule schedule;
  Observer* observer = nullptr;  // implies one host thread
};

struct Statistics {  // of all launches so far
  std::uint64_t warp_instructions = 0, matrix_instructions = 0, ctas = 0;
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options);
  ~Machine();
  // Entry order, registers and memory of the launch as CUDA has them. Faults become Code::kDevice with their
  // sentence.
  Status launch(std::string_view ptx, const Launch& launch, const GlobalMemory& memory);
  Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flashback::emulator
