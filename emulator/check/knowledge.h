// What happened before, as a thread knows it, or as an object of synchronisation passes it on.
#pragma once

#include <map>
#include <memory>

#include "emulator/check/clock.h"

namespace flashback::emulator::checking {

struct Knowledge {
  Clock ordered;  // happened before
  Clock proxied;  // and a fence.proxy.async stands between: visible to the asynchronous proxy
  // Accesses of tensor memory under the strict reading (ISA 9.7.16.6), where the fences of tcgen05 have to
  // stand on both sides of a synchronisation: in front of a coming release, behind a past acquire, and both
  // done.
  Clock published, gained, fenced;

  // Of threads of other CTAs, by the CTA's number: what happened before. Null: nothing.
  using Foreign = std::map<std::uint64_t, Clock>;
  std::shared_ptr<const Foreign> foreign;

  void join(const Knowledge& other) {
    ordered.join(other.ordered);
    proxied.join(other.proxied);
    join_foreign(other.foreign);
    join_tensor(other);
  }
  // What a thread of another CTA passed on.
  void join_foreign(std::uint64_t cta, const Knowledge& other) {
    auto more = std::make_shared<Foreign>();
    if (other.foreign != nullptr) *more = *other.foreign;
    (*more)[cta].join(other.ordered);
    join_foreign(std::move(more));
  }
  void join_foreign(std::shared_ptr<const Foreign> other) {
    if (other == nullptr || other == foreign) return;
    if (foreign == nullptr) {
      foreign = std::move(other);
      return;
    }
    auto both = std::make_shared<Foreign>(*foreign);
    for (const auto& [cta, clock] : *other) (*both)[cta].join(clock);
    foreign = std::move(both);
  }
  // What a relaxed operation passes on.
  void join_tensor(const Knowledge& other) {
    published.join(other.published);
    gained.join(other.published);
  }
};

// Lanes of a warp that know the same. Shared with the operations that they have issued, so it is copied when
// it changes.
struct Strand {
  LaneMask lanes = 0;
  std::shared_ptr<Knowledge> known;  // of others, and of these lanes up to where they last met
  Time fenced_at = 0;                // each lane's own last tcgen05.fence::before_thread_sync

  Knowledge& change() {
    if (known.use_count() > 1) known = std::make_shared<Knowledge>(*known);
    return *known;
  }
};

// Who accesses, with what he knows: lanes of a warp at a time of it. The lanes know themselves up to `now`.
struct View {
  std::shared_ptr<const Knowledge> known;
  Agent first = 0;  // lane 0 of the warp
  LaneMask lanes = 0;
  Time now = 0;
};

}  // namespace flashback::emulator::checking
