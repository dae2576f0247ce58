#include "program/survivors.h"

namespace flashback::program {
namespace {

constexpr std::string_view kDropped = "dropped";

constexpr Survivor kSurvivors[] = {
    {Arch::kSm100, "", "", "fence.mbarrier_init", kDropped, 1,
     "the CTA is alone in its cluster, and its threads meet at a barrier before they use an mbarrier"},
};

}  // namespace

SurvivorReasons::SurvivorReasons(Arch arch, std::string_view entry) {
  for (const Survivor& survivor : kSurvivors) {
    if (survivor.arch == arch && entry.find(survivor.entry) != entry.npos) left_.push_back(survivor);
  }
}

std::optional<std::string> SurvivorReasons::explain(const emulator::checking::Mutation& mutation) {
  for (Survivor& survivor : left_) {
    if (survivor.count == 0 || survivor.change != mutation.change || survivor.section != mutation.section)
      continue;
    if (!mutation.instruction.starts_with(survivor.opcode)) continue;
    --survivor.count;
    return std::string(survivor.reason);
  }
  return {};
}

}  // namespace flashback::program
