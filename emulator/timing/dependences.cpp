#include "emulator/timing/dependences.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/timing/product_groups.h"
#include "emulator/timing/units.h"

namespace flashback::emulator::timing {
namespace {

void join(Begun& into, const Begun& other) {
  for (std::size_t w = 0; w < into.size(); ++w) into[w] = std::max(into[w], other[w]);
}

// Plays a recording without time: warps in turn, each as far as it gets, and units at once. That is one of
// the orders that the program allows; what a warp knows in it, it knows in all of them.
class Play {
 public:
  Play(const Recording& recording, std::vector<std::vector<Begun>>& begun)
      : recording_(recording), kernel_(*recording.kernel), begun_(begun) {
    const std::size_t n = recording.warps.size();
    warps_.resize(n);
    for (Warp& warp : warps_) warp.begun.resize(n);
    phases_.resize(recording.mbarriers, {{}, Begun(n), Begun(n)});
    groups_.resize((n + 3) / 4);
    begun_.resize(n);
  }

  // Whether all warps have come to their end; else *warp has not.
  bool run(std::size_t* warp) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t w = 0; w < warps_.size(); ++w) moved |= run_warp(w);
    }
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      *warp = w;
      if (warps_[w].next < recording_.warps[w].events.size()) return false;
    }
    return true;
  }

 private:
  struct Warp {
    Begun begun;
    std::size_t next = 0;
    std::uint16_t marks = 0;
    bool met = false;  // the named barrier at which it stands
    ProductGroups groups;
  };
  struct Mbarrier {
    Phases phases;
    Begun arrived, ended;  // with all that arrived so far, and as the last phase ended
  };
  struct Barrier {
    std::uint32_t threads = 0;
    Begun arrived;
    std::vector<std::size_t> waiting;
  };
  // A product is issued by four warps. All earlier ones of the warpgroup are done when it is.
  struct Product {
    std::uint32_t warps = 0;
    Begun issued;
  };

  bool run_warp(std::size_t w) {
    Warp& warp = warps_[w];
    const std::vector<Event>& events = recording_.warps[w].events;
    const std::size_t from = warp.next;
    for (; warp.next < events.size(); ++warp.next) {
      const Event& event = events[warp.next];
      if (event.marks != warp.marks) {
        warp.marks = event.marks;
        if (event.section != 0) {
          ++warp.begun[w];
          begun_[w].push_back(warp.begun);
        }
      }
      if (!pass(w, event)) break;
    }
    if (warp.next == events.size() && from < events.size()) ++ended_;
    return warp.next != from;
  }

  // False: not yet.
  bool pass(std::size_t w, const Event& event) {
    Warp& warp = warps_[w];
    switch (kernel_.steps[event.step].action) {
      case Action::kBarrier:
        return meet(w, event, true);
      case Action::kBarrierArrive:
        return meet(w, event, false);
      case Action::kPhaseInit:
        phases_[event.a].phases.expected = phases_[event.a].phases.pending = event.b;
        return true;
      case Action::kPhaseArrive:
        arrive(w, event.a, event.b, 0);
        return true;
      case Action::kPhaseExpect:
        arrive(w, event.a, 1, event.b);
        return true;
      case Action::kCopyIn:
        arrive(w, event.a, 0, -std::int64_t(event.b));
        return true;
      case Action::kCommit:
        arrive(w, event.a, 1, 0);
        return true;
      case Action::kPhaseWait:
        if (!phases_[event.a].phases.done(event.b)) return false;
        join(warp.begun, phases_[event.a].ended);
        return true;
      case Action::kGroupProduct: {
        std::vector<Product>& products = groups_[w / 4];
        if (products.size() == warp.groups.products) products.push_back({0, Begun(warps_.size())});
        Product& product = products[warp.groups.products++];
        ++product.warps;
        join(product.issued, warp.begun);
        return true;
      }
      case Action::kGroupCommit:
        warp.groups.commit();
        return true;
      case Action::kGroupWait: {
        const std::uint32_t wanted = warp.groups.over(event.a);
        if (wanted == 0) return true;
        const Product& last = groups_[w / 4][wanted - 1];
        if (last.warps < 4) return false;
        join(warp.begun, last.issued);
        return true;
      }
      default:
        return true;
    }
  }

  void arrive(std::size_t w, std::uint32_t mbarrier, std::uint32_t count, std::int64_t bytes) {
    Mbarrier& at = phases_[mbarrier];
    join(at.arrived, warps_[w].begun);
    if (at.phases.arrive(count, bytes)) at.ended = at.arrived;
  }

  bool meet(std::size_t w, const Event& event, bool waits) {
    Warp& warp = warps_[w];
    if (event.a >= barriers_.size()) barriers_.resize(event.a + 1);
    Barrier& barrier = barriers_[event.a];
    if (warp.met) return warp.met = false, true;
    if (std::find(barrier.waiting.begin(), barrier.waiting.end(), w) != barrier.waiting.end()) return false;
    if (barrier.arrived.empty()) barrier.arrived.resize(warps_.size());
    join(barrier.arrived, warp.begun);
    barrier.threads += 32;
    if (waits) barrier.waiting.push_back(w);
    const std::size_t threads = event.b != 0 ? event.b : 32 * (warps_.size() - ended_);
    if (barrier.threads < threads) return !waits;
    for (std::size_t other : barrier.waiting) {
      warps_[other].met = other != w;
      join(warps_[other].begun, barrier.arrived);
    }
    barrier = {};
    return true;
  }

  const Recording& recording_;
  const Kernel& kernel_;
  std::vector<std::vector<Begun>>& begun_;
  std::vector<Warp> warps_;
  std::vector<Mbarrier> phases_;
  std::vector<Barrier> barriers_;
  std::vector<std::vector<Product>> groups_;
  std::size_t ended_ = 0;
};

}  // namespace

Dependences::Dependences(const Recording& recording) {
  std::size_t warp = 0;
  if (!Play(recording, begun_).run(&warp))
    error_ = fmt::format("warp {} of {} waits for ever", warp, recording.kernel->name);
}

}  // namespace flashback::emulator::timing
