// A program did something that the machine forbids. Turned into a Status at the launch.
#pragma once

#include <stdexcept>

namespace flashback::emulator {

// One sentence with its place in the program. Thrown by instruction bodies (Warp::fault).
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The same before its place is known: thrown by units and memories, turned into a Fault by whoever knows
// which instruction is at work.
class Misuse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace flashback::emulator
