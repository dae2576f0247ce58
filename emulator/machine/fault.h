// A program did something that the machine forbids. Thrown by instruction bodies and units, turned into a Status at the launch.
#pragma once

#include <stdexcept>
#include <string>

namespace flashback::emulator {

class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace flashback::emulator
