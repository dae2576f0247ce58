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

  // The first two, of the agents of other CTAs, by the CTA's number. Null: nothing.
  struct Remote {
    Clock ordered, proxied;
    void join(const Remote& other) {
      ordered.join(other.ordered);
      proxied.join(other.proxied);
    }
  };
  using Foreign = std::map<std::uint64_t, Remote>;
  std::shared_ptr<const Foreign> foreign;

  void join(const Knowledge& other) {
    ordered.join(other.ordered);
    proxied.join(other.proxied);
    join_foreign(other.foreign);
    join_tensor(other);
  }
  // What CTA `from` passed on to CTA `to`, whose knowledge this is.
  void join_across(std::uint64_t to, std::uint64_t from, const Knowledge& other) {
    if (to == from) {
      join(other);
      return;
    }
    auto all = std::make_shared<Foreign>();
    if (other.foreign != nullptr) *all = *other.foreign;
    (*all)[from].join({other.ordered, other.proxied});
    if (const auto own = all->find(to); own != all->end()) {
      ordered.join(own->second.ordered);
      proxied.join(own->second.proxied);
      all->erase(own);
    }
    join_foreign(std::move(all));
  }
  // Behind a fence.proxy.async, what happened before is visible to the asynchronous proxy.
  void fence_proxy() {
    proxied.join(ordered);
    if (foreign == nullptr) return;
    auto fenced_too = std::make_shared<Foreign>(*foreign);
    for (auto& [cta, remote] : *fenced_too) remote.proxied.join(remote.ordered);
    foreign = std::move(fenced_too);
  }
  void join_foreign(std::shared_ptr<const Foreign> other) {
    if (other == nullptr || other == foreign) return;
    if (foreign == nullptr) {
      foreign = std::move(other);
      return;
    }
    auto both = std::make_shared<Foreign>(*foreign);
    for (const auto& [cta, remote] : *other) (*both)[cta].join(remote);
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
