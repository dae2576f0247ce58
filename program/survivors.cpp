#include "program/survivors.h"

namespace flashback::program {
namespace {

constexpr std::string_view kDropped = "dropped";

constexpr Survivor kSurvivors[] = {
    {Arch::kSm100, "", "fence.mbarrier_init", kDropped, 1,
     "the CTA is alone in its cluster, and its threads meet at a barrier before they use an mbarrier"},
    {Arch::kSm100, "", "tcgen05.fence::before_thread_sync", kDropped, 1,
     "behind the allocation: no access of tensor memory comes before it"},
    {Arch::kSm100, "", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "behind the allocation: no access of tensor memory comes before it"},
    {Arch::kSm100, "", "tcgen05.wait::ld", kDropped, 4,
     "all registers of the load are used before the release: a use waits for its load"},
    {Arch::kSm100, "", "bar.warp.sync", kDropped, 5,
     "brings lanes together behind a branch of one of them; no access lies between that another lane needs"},
    {Arch::kSm100, "", "cp.async.bulk.commit_group", kDropped, 1,
     "of dV: the commit of dK behind it takes the store of dV into its group"},
    {Arch::kSm100, "split", "mbarrier.try_wait", kDropped, 2,
     "the first wait for S or dQ to be empty: nothing is there before the first tile"},
    {Arch::kSm100, "split", "tcgen05.fence::after_thread_sync", kDropped, 2,
     "behind the first wait for S or dQ to be empty"},
    {Arch::kSm100, "aliased", "mbarrier.try_wait", kDropped, 1,
     "the first wait for dQ to be empty: nothing is there before the first tile"},
    {Arch::kSm100, "aliased", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "behind the first wait for dQ to be empty"},
    {Arch::kSm100, "", "mbarrier.try_wait", kDropped, 1,
     "the load warp's wait for lse to be empty: Q of that stage is empty after dK, and dK comes after lse "
     "was read"},
    // The second guard of dS: what it guards was read before the first.
    {Arch::kSm100, "aliased", "bar.sync", kDropped, 1,
     "the second guard of dS over dP: the columns it guards were read by all warps before the first"},
    {Arch::kSm100, "aliased", "tcgen05.fence::before_thread_sync", kDropped, 1, "of the second guard of dS"},
    {Arch::kSm100, "aliased", "tcgen05.fence::after_thread_sync", kDropped, 1, "of the second guard of dS"},
};

}  // namespace

SurvivorReasons::SurvivorReasons(Arch arch, std::string_view entry) {
  for (const Survivor& survivor : kSurvivors) {
    if (survivor.arch == arch && entry.find(survivor.entry) != entry.npos) left_.push_back(survivor);
  }
}

std::optional<std::string> SurvivorReasons::explain(const emulator::checking::Mutation& mutation) {
  for (Survivor& survivor : left_) {
    if (survivor.count == 0 || survivor.change != mutation.change) continue;
    if (!mutation.instruction.starts_with(survivor.opcode)) continue;
    --survivor.count;
    return std::string(survivor.reason);
  }
  return {};
}

}  // namespace flashback::program
