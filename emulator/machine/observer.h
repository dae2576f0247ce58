// Someone who watches a run. With an observer the machine uses a second, slower loop; without one it costs
// nothing.
#pragma once

#include "emulator/program/program.h"

namespace flashback::emulator {

class Cta;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_began(const Program&) {}
  virtual void cta_began(const Cta&) {}
  // Once for each executed instruction that was not put off (a wait that fails is not reported until it
  // succeeds).
  virtual void executed(const Warp&, const Step&, LaneMask) {}
  virtual void cta_ended(const Cta&) {}
};

}  // namespace flashback::emulator
