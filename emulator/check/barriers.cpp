#include <algorithm>

#include "emulator/check/synchronisation.h"
#include "emulator/check/words.h"

namespace flashback::emulator::checking {
namespace {

constexpr std::size_t kGenerationsKept = 4;

}  // namespace

void Barriers::joined(CtaState& state, std::uint32_t warp, const Step& step, std::uint32_t id,
                      std::uint32_t generation) {
  std::vector<BarrierState::Generation>& generations = state.barriers[id].generations;
  Threads& threads = state.warps[warp].threads;
  const auto find = [&](std::uint32_t number) {
    return std::find_if(generations.begin(), generations.end(),
                        [&](const BarrierState::Generation& g) { return g.number == number; });
  };
  if (strict_) {
    // The last generation that the warp was part of must be known to be complete.
    for (auto earlier = generations.rbegin(); earlier != generations.rend(); ++earlier) {
      if (earlier->number == generation || !earlier->has(warp)) continue;
      bool complete = true;
      threads.each_known(kAllLanes, [&](const std::shared_ptr<Knowledge>& known, LaneMask lanes) {
        for (const auto& [member, time] : earlier->members) {
          complete &= member == warp || known->ordered.behind(32 * member, 1, time) == 0;
        }
        static_cast<void>(lanes);
      });
      if (!complete) {
        findings_.add("barrier", Severity::kAdvice, source_key(*program_, &step) + " early", [&] {
          return fmt::format(
              "{}: warp {} arrives at barrier {} ({}) without knowing that the barrier has completed since "
              "it "
              "arrived there last; a slow warp there would let this arrival count for the earlier one.",
              cta_words(*state.cta), warp, id, step_words(*program_, step));
        });
      }
      break;
    }
  }
  auto place = find(generation);
  if (place == generations.end()) {
    if (generations.size() == kGenerationsKept) generations.erase(generations.begin());
    generations.push_back({generation, {}, {}});
    place = generations.end() - 1;
  }
  if (place->has(warp)) {
    findings_.add("barrier", Severity::kError, source_key(*program_, &step) + " twice", [&] {
      return fmt::format(
          "{}: warp {} arrives at barrier {} ({}) for the second time before the barrier completes; its "
          "arrivals "
          "count for two warps.",
          cta_words(*state.cta), warp, id, step_words(*program_, step));
    });
  }
  place->members.push_back({warp, threads.now()});
  threads.release(kAllLanes, &place->joined, false);
}

void Barriers::passed(CtaState& state, std::uint32_t warp, std::uint32_t id, std::uint32_t generation) {
  for (const BarrierState::Generation& g : state.barriers[id].generations) {
    if (g.number == generation) state.warps[warp].threads.acquire(kAllLanes, g.joined, false);
  }
}

void Barriers::cluster_joined(CtaState& state, std::uint32_t warp, std::uint32_t generation, bool relaxed) {
  std::map<std::uint32_t, ClusterGeneration>& generations = clusters_[&state.cta->cluster()];
  if (generations.size() == kGenerationsKept && !generations.contains(generation))
    generations.erase(generations.begin());
  state.warps[warp].threads.release(kAllLanes, &generations[generation][state.number], relaxed);
}

void Barriers::cluster_passed(CtaState& state, std::uint32_t warp, std::uint32_t generation) {
  Knowledge all;
  for (const auto& [cta, knowledge] : clusters_[&state.cta->cluster()][generation])
    all.join_across(state.number, cta, knowledge);
  state.warps[warp].threads.acquire(kAllLanes, all, false);
}

}  // namespace flashback::emulator::checking
