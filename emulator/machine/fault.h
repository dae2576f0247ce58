// A program did something that the machine forbids. Turned into a Status at the launch.
#pragma once

#include <stdexcept>
#include <string>

namespace flashback::emulator {

// What CUDA tells apart.
enum class FaultKind { kIllegalAddress, kMisalignedAddress, kAssertion, kOther };

// One sentence with its place in the program. Thrown by instruction bodies (Warp::fault).
class Fault : public std::runtime_error {
 public:
  explicit Fault(const std::string& what, FaultKind kind = FaultKind::kOther)
      : std::runtime_error(what), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

// The same before its place is known: thrown by units and memories, turned into a Fault by whoever knows
// which instruction is at work.
class Misuse : public std::runtime_error {
 public:
  explicit Misuse(const std::string& what, FaultKind kind = FaultKind::kOther)
      : std::runtime_error(what), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

}  // namespace flashback::emulator
