#include "emulator/machine/register_pool.h"

#include <fmt/format.h>

#include "emulator/machine/fault.h"

namespace flashback::emulator {

void RegisterPool::reset(std::uint32_t warps, std::uint32_t at_launch) {
  held_.assign(warps, at_launch);
  calls_.assign(warps, 0);
  asked_.assign((warps + 3) / 4, {});
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
  // The n-th setmaxnreg of every warp of a warpgroup is the same one.
  std::vector<std::uint32_t>& asked = asked_[warp / 4];
  const std::uint32_t call = calls_[warp];
  if (call == asked.size()) asked.push_back(registers);
  if (asked[call] != registers) {
    throw Misuse(
        fmt::format("setmaxnreg to {} registers, where another warp of warps {} to {} asks for {}; all warps "
                    "of a warpgroup must ask for the same",
                    registers, warp / 4 * 4, warp / 4 * 4 + 3, asked[call]));
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
  ++calls_[warp];
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
  ++calls_[warp];
  return true;
}

}  // namespace flashback::emulator
