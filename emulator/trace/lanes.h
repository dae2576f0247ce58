// Which lanes a run has, and what stands in them.
#pragma once

#include <string>
#include <vector>

#include "emulator/trace/trace.h"

namespace flashback::emulator::trace {

struct Bar {
  double begin = 0, end = 0;
  std::string name;  // of its section
  bool waits = false;
  std::string waits_for;  // who ended the wait
};

struct Lane {
  std::string name;
  bool of_warp = false;
  std::vector<Bar> bars;  // ascending; those of a unit may overlap
};

// The tensor core, copies, reductions, then the warps that do more than ask a unit for work.
std::vector<Lane> lanes_of(const Run& run);

}  // namespace flashback::emulator::trace
