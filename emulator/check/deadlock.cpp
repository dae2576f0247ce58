// What a deadlock says beyond who waits where: who has arrived, and who used to and has not.
#include <algorithm>

#include "emulator/check/checker.h"
#include "emulator/check/words.h"

namespace flashback::emulator::checking {
namespace {

std::string warps_words(const std::vector<std::uint32_t>& warps) {
  std::string text;
  for (const std::uint32_t warp : warps) text += fmt::format("{}{}", text.empty() ? "" : ", ", warp);
  return text.empty() ? "nobody" : (warps.size() == 1 ? "warp " : "warps ") + text;
}

}  // namespace

void Checker::stuck(const Cta& cta) {
  const CtaState& state = state_of(cta);
  for (const Warp& warp : cta.warps()) {
    for (const Warp::Group& group : warp.groups()) {
      const Step& step = program_->code[group.pc];
      if (group.wait.kind != Wait::Kind::kMbarrier) continue;
      const auto place = state.mbarriers.find(group.wait.what);
      if (place == state.mbarriers.end()) continue;
      const MbarrierState& mbarrier = place->second;
      std::vector<std::uint32_t> missing;
      for (const auto& [who, arrivals] : mbarrier.arrivals) {
        const auto& arrived = mbarrier.arrived_warps;
        if (std::find(arrived.begin(), arrived.end(), who) == arrived.end()) missing.push_back(who);
      }
      findings_.add("deadlock", Severity::kError, source_key(*program_, &step), [&] {
        return fmt::format(
            "{}: warp {} waits for phase {} (parity {}) of {} ({}) and nobody can go on. {} phases of it are "
            "over; of "
            "the {} arrivals of this one it has those of {}; {} arrived in earlier phases and {} not in this "
            "one.",
            cta_words(cta), warp.index(), mbarrier.phase, group.wait.when, mbarrier_words(group.wait.what),
            step_words(*program_, step), mbarrier.phase, mbarrier.expected,
            warps_words(mbarrier.arrived_warps), warps_words(missing), missing.size() == 1 ? "has" : "have");
      });
    }
  }
}

}  // namespace flashback::emulator::checking
