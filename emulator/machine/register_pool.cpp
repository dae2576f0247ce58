#include "emulator/machine/register_pool.h"

#include <fmt/format.h>

#include "emulator/machine/fault.h"

namespace flashback::emulator {

void RegisterPool::reset(std::uint32_t warps, std::uint32_t at_launch) {
  held_.assign(warps, at_launch);
  free_ = 0;
}

void RegisterPool::check(std::uint32_t warp, std::uint32_t registers) {
  if (registers < kMin || registers > kMax || registers % kStep != 0) {
    throw Misuse(fmt::format("setmaxnreg to {} registers; {} to {} in steps of {} are allowed", registers,
                             kMin, kMax, kStep));
  }
  if (held_[warp] == 0) {
    throw Misuse("setmaxnreg in an entry that states neither .maxntid nor .reqntid nor .maxnreg");
  }
}

void RegisterPool::release(std::uint32_t warp, std::uint32_t registers) {
  check(warp, registers);
  if (registers > held_[warp]) {
    throw Misuse(
        fmt::format("setmaxnreg.dec to {} registers by a warp that holds {}", registers, held_[warp]));
  }
  free_ += held_[warp] - registers;
  held_[warp] = registers;
}

bool RegisterPool::acquire(std::uint32_t warp, std::uint32_t registers) {
  check(warp, registers);
  if (registers < held_[warp]) {
    throw Misuse(
        fmt::format("setmaxnreg.inc to {} registers by a warp that holds {}", registers, held_[warp]));
  }
  if (registers - held_[warp] > free_) return false;
  free_ -= registers - held_[warp];
  held_[warp] = registers;
  return true;
}

}  // namespace flashback::emulator
