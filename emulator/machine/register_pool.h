// The registers of a CTA, as setmaxnreg moves them between its warps. Nothing is kept in them here; the pool
// says when a warp would have to wait and when a program asks for what cannot be.
#pragma once

#include <cstdint>
#include <vector>

namespace flashback::emulator {

class RegisterPool {
 public:
  static constexpr std::uint32_t kMin = 24, kMax = 256, kStep = 8;  // registers a thread

  // All warps hold `at_launch` registers a thread; none are free. 0: the program does not fix the number.
  void reset(std::uint32_t warps, std::uint32_t at_launch);
  // Throw Misuse where a rule is broken: range, direction. Each warp has its own number: the ISA wants one
  // for a warpgroup, but CUTLASS's example 77 asks for two in its forward pass, which works on hardware.
  void release(std::uint32_t warp, std::uint32_t registers);
  bool acquire(std::uint32_t warp, std::uint32_t registers);  // false: not enough are free yet

 private:
  void check(std::uint32_t warp, std::uint32_t registers);

  std::vector<std::uint32_t> held_;  // of a thread, for each warp
  std::uint32_t free_ = 0;           // registers of a lane of a warp
};

}  // namespace flashback::emulator
