// The threads of a warp among themselves and against the rest: what each knows, and what it passes on.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/knowledge.h"

namespace flashback::emulator::checking {

class Threads {
 public:
  void reset(Agent first, LaneMask lanes);

  Agent first() const { return first_; }
  // Counts releases and issues: what comes behind one is not part of it.
  Time now() const { return now_; }

  // Calls f(strand, lanes of it) for the strands that `lanes` consist of, which are cut where needed.
  template <class F>
  void each_strand(LaneMask lanes, F&& f) {
    cut(lanes);
    for (Strand& strand : strands_) {
      if ((strand.lanes & lanes) != 0) f(strand);
    }
  }
  // The same without changing anything: f(known, lanes).
  template <class F>
  void each_known(LaneMask lanes, F&& f) const {
    for (const Strand& strand : strands_) {
      if ((strand.lanes & lanes) != 0) f(strand.known, strand.lanes & lanes);
    }
  }

  // The lanes wait for each other and know afterwards what any of them did.
  void synchronise(LaneMask lanes);
  // What the lanes know and did so far becomes part of `to`; `relaxed`: of tensor memory only, as far as
  // fences stand before.
  void release(LaneMask lanes, Knowledge* to, bool relaxed);
  void acquire(LaneMask lanes, const Knowledge& from, bool relaxed);
  // All lanes know of `agent` up to `time`.
  void learn(Agent agent, Time time);
  // An operation that the lanes issue now sees what they have done before.
  View issue(LaneMask lanes);

  void fence_proxy(LaneMask lanes);
  void fence_initialised(LaneMask lanes);
  void fence_before_sync(LaneMask lanes);
  void fence_after_sync(LaneMask lanes);

 private:
  void cut(LaneMask lanes);

  Agent first_ = 0;
  Time now_ = 1;
  std::vector<Strand> strands_;
};

}  // namespace flashback::emulator::checking
