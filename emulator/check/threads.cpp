#include "emulator/check/threads.h"

namespace flashback::emulator::checking {

void Threads::reset(Agent first, LaneMask lanes) {
  first_ = first;
  now_ = 1;
  strands_.assign(1, {lanes, std::make_shared<Knowledge>(), 0});
}

void Threads::cut(LaneMask lanes) {
  for (std::size_t s = 0, count = strands_.size(); s < count; ++s) {
    const LaneMask inside = strands_[s].lanes & lanes, outside = strands_[s].lanes & ~lanes;
    if (inside == 0 || outside == 0) continue;
    strands_[s].lanes = inside;
    strands_.push_back({outside, strands_[s].known, strands_[s].fenced_at});
  }
}

void Threads::synchronise(LaneMask lanes) {
  auto all = std::make_shared<Knowledge>();
  LaneMask met = 0;
  std::erase_if(strands_, [&](Strand& strand) {
    const LaneMask inside = strand.lanes & lanes;
    if (inside == 0) return false;
    met |= inside;
    all->join(*strand.known);
    all->gained.join(strand.known->gained);
    all->fenced.join(strand.known->fenced);
    if (strand.fenced_at != 0) all->published.raise(first_, inside, strand.fenced_at);
    strand.lanes &= ~lanes;
    return strand.lanes == 0;
  });
  all->ordered.raise(first_, met, now_);
  all->gained.join(all->published);
  strands_.push_back({met, std::move(all), 0});
  ++now_;
}

void Threads::release(LaneMask lanes, Knowledge* to, bool relaxed) {
  for (const Strand& strand : strands_) {
    const LaneMask inside = strand.lanes & lanes;
    if (inside == 0) continue;
    if (strand.fenced_at != 0) to->published.raise(first_, inside, strand.fenced_at);
    if (relaxed) {
      to->join_relaxed(*strand.known);
    } else {
      to->join(*strand.known);
      to->ordered.raise(first_, inside, now_);
    }
  }
  ++now_;
}

void Threads::acquire(LaneMask lanes, const Knowledge& from, bool relaxed) {
  each_strand(lanes, [&](Strand& strand) {
    if (relaxed) {
      strand.change().join_relaxed(from);
    } else {
      strand.change().join(from);
    }
  });
}

void Threads::learn(Agent agent, Time time) {
  for (Strand& strand : strands_) {
    if (strand.known->ordered.at(agent) < time) strand.change().ordered.raise(agent, time);
  }
}

View Threads::issue(LaneMask lanes) {
  cut(lanes);
  View view{nullptr, first_, lanes, now_};
  for (const Strand& strand : strands_) {
    if ((strand.lanes & lanes) == 0) continue;
    if (view.known == nullptr) {
      view.known = strand.known;
    } else {  // several lanes together: what all of them know is more than each one does
      auto both = std::make_shared<Knowledge>(*view.known);
      both->join(*strand.known);
      view.known = std::move(both);
    }
  }
  ++now_;
  return view;
}

void Threads::fence_proxy(LaneMask lanes) {
  each_strand(lanes, [&](Strand& strand) {
    Knowledge& known = strand.change();
    known.fence_proxy();
    known.proxied.raise(first_, strand.lanes, now_);
  });
  ++now_;
}

void Threads::fence_initialised(LaneMask lanes) {
  each_strand(lanes, [&](Strand& strand) { strand.change().initialised.raise(first_, strand.lanes, now_); });
  ++now_;
}

void Threads::fence_before_sync(LaneMask lanes) {
  each_strand(lanes, [&](Strand& strand) {
    Knowledge& known = strand.change();
    known.published.join(known.fenced);
    strand.fenced_at = now_;
  });
  ++now_;
}

void Threads::fence_after_sync(LaneMask lanes) {
  each_strand(lanes, [&](Strand& strand) {
    Knowledge& known = strand.change();
    known.fenced.join(known.gained);
  });
}

}  // namespace flashback::emulator::checking
