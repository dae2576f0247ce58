// A recording under a cost table: when everything happens on one SM that runs this CTA alone.
//
// Warps issue in order, one instruction a cycle and sub-partition (warp % 4), when what they read is there
// and the pipe is free. Every unit serves first come, first served. Asynchronous work goes its way and
// completes mbarriers and groups as the machine's does; only here each step has a time.
#pragma once

#include <string>
#include <vector>

#include "emulator/timing/costs.h"
#include "emulator/timing/recording.h"
#include "emulator/timing/timeline.h"

namespace flashback::emulator::timing {

// Cycles for which a unit worked, the four sub-partitions' on average.
struct Busy {
  double issue = 0, fma = 0, alu = 0, special = 0;
  double shared = 0, operands = 0;  // ports; the second only where there are two
  double tensor_core = 0, tensor_read = 0, tensor_write = 0;
  double copies_in = 0, reductions = 0;
};

struct Outcome {
  double cycles = 0;  // from the first instruction to the last warp's end
  Busy busy;
  std::string error;  // of a recording that cannot be played to its end: who waits for what
  bool ok() const { return error.empty(); }

  // When a warp began a section, in the order of time.
  struct Begin {
    double time;
    std::uint16_t warp, section;
  };
  std::vector<Begin> begins;
};

// `timeline` may be null.
Outcome replay(const Recording& recording, const Costs& costs, Timeline* timeline);

}  // namespace flashback::emulator::timing
