// How far somebody's knowledge reaches, for one kind of memory and one kind of access.
#pragma once

#include <cstdint>

#include "emulator/check/knowledge.h"

namespace flashback::emulator::checking {

enum class Space : std::uint8_t { kShared, kGlobal, kTensor };

class Sight {
 public:
  enum class Of : std::uint8_t {
    kHappened,
    kProxied,  // and is visible to the asynchronous proxy
    kFenced,   // and the fences of tcgen05 stand where they have to: within the CTA
  };
  // `known`: by a thread or operation of CTA `cta`. `scoped`: by the letter of scopes, not as hardware does.
  Sight(const Knowledge& known, std::uint64_t cta, Space space, Of of, bool scoped)
      : cta_(cta),
        own_(of == Of::kHappened  ? known.ordered
             : of == Of::kProxied ? known.proxied
                                  : known.fenced),
        remote_(of == Of::kProxied ? &Knowledge::Remote::proxied : &Knowledge::Remote::ordered) {
    if (of == Of::kFenced) return;
    parts_[0] = known.foreign.get();
    if (space == Space::kGlobal) return;
    parts_[1] = known.of_shared.get();
    if (!scoped) parts_[2] = known.unscoped.get();
  }

  // Those of `lanes` of the warp at `first` of CTA `cta` that are known only up to before `time`.
  LaneMask behind(std::uint64_t cta, Agent first, LaneMask lanes, Time time) const {
    if (cta == cta_) lanes = own_.behind(first, lanes, time);
    for (const auto* part : parts_) {
      if (lanes == 0) break;
      if (const Clock* clock = clock_in(part, cta)) lanes = clock->behind(first, lanes, time);
    }
    return lanes;
  }
  bool knows(std::uint64_t cta, Agent agent, Time time) const {
    if (cta == cta_ && own_.at(agent) >= time) return true;
    for (const auto* part : parts_) {
      const Clock* clock = clock_in(part, cta);
      if (clock != nullptr && clock->at(agent) >= time) return true;
    }
    return false;
  }

 private:
  using Part = Knowledge::ByCta::element_type;
  const Clock* clock_in(const Part* part, std::uint64_t cta) const {
    if (part == nullptr) return nullptr;
    const auto place = part->find(cta);
    return place == part->end() ? nullptr : &(place->second.*remote_);
  }

  std::uint64_t cta_;
  const Clock& own_;
  Clock Knowledge::Remote::*remote_;
  const Part* parts_[3] = {};
};

}  // namespace flashback::emulator::checking
