// The sixteen barriers of bar/barrier. Arrivals are counted in threads, a whole warp at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace flashback::emulator {

class NamedBarriers {
 public:
  static constexpr std::uint32_t kCount = 16;
  // The CTA's warps that have not exited: what a barrier without a thread count waits for.
  void reset(std::uint32_t live_warps);

  // A warp arrives at barrier `id` that waits for `threads` (0: all of the CTA). `trues` of its threads
  // brought a true predicate (for .red). Throws Misuse where counts disagree or ids are out of range. Returns
  // the generation to wait for.
  std::uint32_t arrive(std::uint32_t id, std::uint32_t threads, std::uint32_t trues);
  bool passed(std::uint32_t id, std::uint32_t generation) const {
    return barriers_[id].generation != generation;
  }
  // Of the generation that was completed last: threads and those with a true predicate.
  struct Votes {
    std::uint32_t threads, trues;
  };
  Votes votes(std::uint32_t id) const { return barriers_[id].votes; }

  void warp_exited();
  std::string describe(std::uint32_t id) const;  // "128 of 256 threads have arrived"

 private:
  struct Barrier {
    std::uint32_t arrived = 0, trues = 0;
    std::uint32_t expected = 0;  // threads; 0 while nobody has arrived
    bool whole_cta = false;
    std::uint32_t generation = 0;
    Votes votes = {};
  };
  void complete_if_full(Barrier& barrier);

  std::array<Barrier, kCount> barriers_;
  std::uint32_t live_warps_ = 0;
};

}  // namespace flashback::emulator
