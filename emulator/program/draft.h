// A program between matching and allocation: its steps name virtual registers, by number, where the finished
// ones hold slots.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/program/program.h"

namespace flashback::emulator {

// A Register is an index into Draft::registers.
struct VirtualRegister {
  std::uint8_t bytes = 0;  // 2, 4, 8, 16; 0 is a predicate
  bool is_preset = false;
  Preset::Kind kind = Preset::Kind::kBits;  // of a preset
  std::uint64_t value = 0;
  bool dynamic_shared = false;  // `value` counts from the start of dynamic shared memory
};

struct Access {
  Register register_number;
  bool read, written;
};

// Work that goes on behind its step.
enum class Asynchronous : std::uint8_t {
  kNone,
  kTensorLoad,  // tcgen05.ld
  kProduct,     // wgmma.mma_async
};

struct DraftStep {
  Step step;                     // d, a, b, c, guard are Registers; `list` is not set, `list_size` is
  std::uint32_t list_begin = 0;  // in Draft::lists
  std::uint32_t access_begin = 0, access_end = 0;
  bool branches = false;  // to step.target
  bool ends = false;      // ret, exit, trap
  Asynchronous asynchronous = Asynchronous::kNone;
  Asynchronous waits_for_all = Asynchronous::kNone;  // after it no work of that kind is unfinished
  Program::SourceLine source;
};

struct Draft {
  std::vector<DraftStep> steps;
  std::vector<VirtualRegister> registers;
  std::vector<Register> lists;
  std::vector<Access> accesses;
};

}  // namespace flashback::emulator
