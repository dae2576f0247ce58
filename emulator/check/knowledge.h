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
  // Up to a fence.mbarrier_init: which mbarriers are initialised is passed on by relaxed operations as well.
  Clock initialised;

  struct Remote {
    Clock ordered, proxied;
    void join(const Remote& other) {
      ordered.join(other.ordered);
      proxied.join(other.proxied);
    }
  };
  // By the number of a CTA. Null: nothing.
  using ByCta = std::shared_ptr<const std::map<std::uint64_t, Remote>>;
  ByCta foreign;  // the first two, of the agents of other CTAs
  // What orders accesses of shared memory alone, of any CTA's agents: by a fence with .sync_restrict (ISA
  // 9.7.13.4);
  ByCta of_shared;
  // and on hardware only, where a scope does not reach from one CTA to the other (8.5): shared memory has no
  // caches.
  ByCta unscoped;

  void join(const Knowledge& other) {
    ordered.join(other.ordered);
    proxied.join(other.proxied);
    join(foreign, other.foreign);
    join(of_shared, other.of_shared);
    join(unscoped, other.unscoped);
    join_relaxed(other);
  }
  // What CTA `from` passed on to CTA `to`, whose knowledge this is.
  void join_across(std::uint64_t to, std::uint64_t from, const Knowledge& other) {
    if (to == from) {
      join(other);
      return;
    }
    auto all = other.all_of(from);
    if (const auto own = all->find(to); own != all->end()) {
      ordered.join(own->second.ordered);
      proxied.join(own->second.proxied);
      all->erase(own);
    }
    join(foreign, std::move(all));
    join(of_shared, other.of_shared);
    join(unscoped, other.unscoped);
  }
  // All that CTA `from` passes on with this, as `of_shared` or `unscoped`.
  Knowledge as(ByCta Knowledge::*part, std::uint64_t from) const {
    Knowledge all;
    all.unscoped = unscoped;
    join(all.*part, all_of(from));
    join(all.*part, of_shared);
    return all;
  }
  // The same CTA's knowledge with more of another's agent in it.
  void raise_in(std::uint64_t cta, Agent agent, Time time) {
    auto all = foreign == nullptr ? std::make_shared<Map>() : std::make_shared<Map>(*foreign);
    (*all)[cta].ordered.raise(agent, time);
    foreign = std::move(all);
  }
  // Behind a fence.proxy.async, what happened before is visible to the asynchronous proxy.
  void fence_proxy() {
    proxied.join(ordered);
    for (ByCta* const part : {&foreign, &of_shared, &unscoped}) {
      if (*part == nullptr) continue;
      auto fenced_too = std::make_shared<Map>(**part);
      for (auto& [cta, remote] : *fenced_too) remote.proxied.join(remote.ordered);
      *part = std::move(fenced_too);
    }
  }
  // What a relaxed operation passes on.
  void join_relaxed(const Knowledge& other) {
    initialised.join(other.initialised);
    published.join(other.published);
    gained.join(other.published);
  }

 private:
  using Map = std::map<std::uint64_t, Remote>;
  std::shared_ptr<Map> all_of(std::uint64_t cta) const {
    auto all = foreign == nullptr ? std::make_shared<Map>() : std::make_shared<Map>(*foreign);
    (*all)[cta].join({ordered, proxied});
    return all;
  }
  static void join(ByCta& to, ByCta other) {
    if (other == nullptr || other == to) return;
    if (to == nullptr) {
      to = std::move(other);
      return;
    }
    auto both = std::make_shared<Map>(*to);
    for (const auto& [cta, remote] : *other) (*both)[cta].join(remote);
    to = std::move(both);
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
