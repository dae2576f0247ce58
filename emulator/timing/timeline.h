// What a replay saw, for those who draw it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/timing/recording.h"

namespace flashback::emulator::timing {

// Who does something: a warp, or an asynchronous unit.
enum class Agent : std::uint8_t { kWarp, kTensorCore, kCopy, kReduce };

struct Actor {
  Agent agent = Agent::kWarp;
  std::uint16_t warp = 0;     // that does it, or that asked for it
  std::uint16_t section = 0;  // of Kernel::sections, in which it was asked for
};

struct Span {
  Actor actor;
  double begin = 0, end = 0;  // cycles
  bool waits = false;
  Actor until;  // of a wait: who ended it
  // Of a wait: when that one did what ended it; what follows is the signal's time. Of a product: when it
  // reached the tensor core, which may have been busy.
  double caused = 0;
};

// A named barrier that is complete.
struct Meeting {
  double time = 0;  // of the last arrival
  std::uint32_t barrier = 0;
  std::uint32_t warps = 0;            // that waited there; others only arrive
  std::uint16_t first = 0, last = 0;  // of these
};

// A wait that is over, also one that was over when it began.
struct Waited {
  std::uint32_t line = 0;  // of the PTX
  Actor until;
};

struct Timeline {
  std::shared_ptr<const Kernel> kernel;
  std::vector<Span> spans;  // in the order in which they end
  std::vector<Meeting> meetings;
  std::vector<Waited> waits;
};

}  // namespace flashback::emulator::timing
