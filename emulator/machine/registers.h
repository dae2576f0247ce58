// What the registers of a warp hold when it starts: constants, parameter and shared addresses, special
// registers. Everything else is poisoned with 0xff bytes, so that a run never depends on what ran before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/program/program.h"

namespace flashback::emulator {

class Cta;
struct LaunchState;

class StartRegisters {
 public:
  // What is the same for all warps of the launch is laid out once.
  explicit StartRegisters(const LaunchState& launch);
  StartRegisters() = default;

  // `local` is the local memory of lane 0; the other lanes' follow.
  void copy_to(std::byte* registers, const Cta& cta, int warp, const std::byte* local) const;

 private:
  std::vector<std::byte> image_;
  std::vector<Preset> of_warp_;  // differ from warp to warp
};

}  // namespace flashback::emulator
