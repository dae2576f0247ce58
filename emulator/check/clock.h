// What somebody knows of everybody: a time for each agent. Agents are the threads of a CTA (32 times the warp
// plus the lane), its tensor core, its warpgroups' products, and for each of its mbarriers the copies that it
// tells of.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/program/program.h"

namespace flashback::emulator::checking {

using Agent = std::uint32_t;
using Time = std::uint32_t;  // 0: never

class Clock {
 public:
  Time at(Agent agent) const { return agent < times_.size() ? times_[agent] : 0; }
  void raise(Agent agent, Time time) {
    if (agent >= times_.size()) times_.resize(agent + 1);
    times_[agent] = std::max(times_[agent], time);
  }
  void raise(Agent first, LaneMask lanes, Time time) {
    if (first + 32 > times_.size()) times_.resize(first + 32);
    for (Agent l = 0; l < 32; ++l) {
      if ((lanes >> l & 1) != 0) times_[first + l] = std::max(times_[first + l], time);
    }
  }
  void join(const Clock& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
    Time* mine = times_.data();
    const Time* theirs = other.times_.data();
    for (std::size_t i = 0; i < other.times_.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
  }
  // Those of `lanes` of the warp at `first` that are known only up to before `time`.
  LaneMask behind(Agent first, LaneMask lanes, Time time) const {
    if (lanes == 0 || first + 32 > times_.size()) return lanes;
    LaneMask behind = 0;
    const __m256i wanted = _mm256_set1_epi32(static_cast<int>(time));
    for (int part = 0; part < 4; ++part) {
      const __m256i known =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(times_.data() + first + 8 * part));
      const __m256i less = _mm256_cmpgt_epi32(wanted, known);  // times stay below 2^31
      behind |= static_cast<LaneMask>(_mm256_movemask_ps(_mm256_castsi256_ps(less))) << 8 * part;
    }
    return behind & lanes;
  }
  bool empty() const { return times_.empty(); }

 private:
  std::vector<Time> times_;
};

}  // namespace flashback::emulator::checking
