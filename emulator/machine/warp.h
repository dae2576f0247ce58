// A warp: its registers, where it is, and how it stops. The interface that instruction bodies are written against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/program/program.h"

namespace flashback::emulator {

class Cta;

class Warp {
 public:
  // The 32 lanes of a register.
  template <class T>
  T* lanes(Slot slot) { return reinterpret_cast<T*>(registers_ + slot); }
  template <class T>
  const T* lanes(Slot slot) const { return reinterpret_cast<const T*>(registers_ + slot); }
  LaneMask predicate(Slot slot) const { return *lanes<LaneMask>(slot); }
  void set_predicate(Slot slot, LaneMask bits, LaneMask mask) {
    LaneMask* p = lanes<LaneMask>(slot);
    *p = (*p & ~mask) | (bits & mask);
  }

  Cta& cta() const { return *cta_; }
  int index() const { return index_; }  // in the CTA
  LaneMask active() const { return active_; }
  LaneMask live() const { return live_; }  // lanes that have not exited

  // ... the rest (groups, scheduling, pending loads) belongs to the machine.

  // Throws a Fault whose sentence is `what` plus where: entry, CTA, warp, PTX line, opcode, CUDA source line.
  [[noreturn]] void fault(const Step& step, const std::string& what) const;

 private:
  std::byte* registers_ = nullptr;
  Cta* cta_ = nullptr;
  int index_ = 0;
  LaneMask active_ = 0, live_ = 0;
};

}  // namespace flashback::emulator
