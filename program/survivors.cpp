#include "program/survivors.h"

namespace flashback::program {
namespace {

constexpr std::string_view kDropped = "dropped";

constexpr Survivor kSurvivors[] = {
    // --- sm_100a
    {Arch::kSm100, "", "", "fence.mbarrier_init", kDropped, 1,
     "the CTA is alone in its cluster, and its threads meet at a barrier before they use an mbarrier"},
    {Arch::kSm100, "", "", "tcgen05.fence::before_thread_sync", kDropped, 1,
     "behind the allocation: no access of tensor memory comes before it"},
    {Arch::kSm100, "", "", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "behind the allocation: no access of tensor memory comes before it"},
    // Each turn has a proxy fence at both of its ends; by ISA 8.9.5 one on the way orders.
    {Arch::kSm100, "", "add dQ", "fence.proxy.async.global", kDropped, 2,
     "at one end of a turn; there is one at the other end"},
    {Arch::kSm100, "", "store gradient", "fence.proxy.async.global", kDropped, 4,
     "at one end of a turn; there is one at the other end"},
    // ptxas may move a use, so the waits stay.
    {Arch::kSm100, "split", "load dP", "tcgen05.wait::ld", kDropped, 1,
     "each register is used before the signal, and a use waits for its load"},
    {Arch::kSm100, "d128", "load dQ", "tcgen05.wait::ld", kDropped, 1,
     "of the first slab: each register is stored before the signal, which comes with the second"},
    {Arch::kSm100, "aliased", "load S", "tcgen05.wait::ld", kDropped, 1,
     "each register is used before the guard, and a use waits for its load"},
    {Arch::kSm100, "", "dS", "tcgen05.wait::ld", kDropped, 1,
     "each register is used before the signal, and a use waits for its load"},
    {Arch::kSm100, "", "store gradient", "tcgen05.wait::ld", kDropped, 4,
     "each register is used before it is stored, and a use waits for its load"},
    {Arch::kSm100, "", "add dQ", "bar.warp.sync", kDropped, 4,
     "brings the warp together behind its issuer's branch; all lanes meet at a barrier before they write "
     "again"},
    {Arch::kSm100, "", "store gradient", "bar.warp.sync", kDropped, 6,
     "brings the warp together behind its issuer's branch; no access lies between that another lane needs"},
    {Arch::kSm100, "", "delta", "bar.warp.sync", kDropped, 1,
     "brings the last warps together in front of a barrier of the CTA, which waits for all lanes"},
    {Arch::kSm100, "", "store gradient", "cp.async.bulk.commit_group", kDropped, 5,
     "of all blocks but the last: the next commit of the thread takes the block into its group"},
    {Arch::kSm100, "split", "S", "mbarrier.try_wait", kDropped, 1,
     "the wait for S to be empty, of the first tile: nothing is there"},
    {Arch::kSm100, "split", "S", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "behind the wait for S to be empty, of the first tile"},
    {Arch::kSm100, "", "dP", "mbarrier.try_wait", kDropped, 1,
     "the wait for dQ to be empty, of the first tile: nothing is there"},
    {Arch::kSm100, "", "dP", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "behind the wait for dQ to be empty, of the first tile"},
    {Arch::kSm100, "", "lse", "mbarrier.try_wait", kDropped, 1,
     "the stage of Q before it is empty after a dK, and that comes after lse of the stage was read"},
    // The second guard of dS over dP: all warps have read what it guards before the first.
    {Arch::kSm100, "aliased", "dS", "bar.sync", kDropped, 1,
     "the second guard of dS over dP: all warps have read both halves of dP before the first"},
    {Arch::kSm100, "aliased", "dS", "tcgen05.fence::before_thread_sync", kDropped, 1,
     "of the second guard of dS over dP"},
    {Arch::kSm100, "aliased", "dS", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "of the second guard of dS over dP"},
    // --- sm_90a. Of compute a kernel with a mask holds two or three copies.
    {Arch::kSm90, "", "", "fence.mbarrier_init", kDropped, 1,
     "the CTA is alone in its cluster, and its threads meet at a barrier before they use an mbarrier"},
    {Arch::kSm90, "", "", "bar.warp.sync", kDropped, 1,
     "of compute, before it gives work back: for gradients in fp32, which read the work last; in 16 bit the "
     "warp has stepped together since"},
    {Arch::kSm90, "", "S, dP", "wgmma.fence", kDropped, 3,
     "before dP: its registers have not changed since the fence before S; brings the four warps into the "
     "product together"},
    {Arch::kSm90, "", "dV", "wgmma.commit_group", kDropped, 3, "the commit of dK takes dV into its group"},
    {Arch::kSm90, "", "dK", "wgmma.fence", kDropped, 3,
     "its registers have not changed since the fence before dV; brings the four warps into the product "
     "together"},
    {Arch::kSm90, "", "dK", "mbarrier.try_wait", kDropped, 1,
     "of multiply, for K: dS of the work comes after its K"},
    {Arch::kSm90, "", "dK", "bar.warp.sync", kDropped, 3,
     "the lane that gives the operands back has waited for the products itself"},
    {Arch::kSm90, "", "dQ", "bar.warp.sync", kDropped, 1,
     "the lane that gives the operands back has waited for the products itself"},
    {Arch::kSm90, "", "store dQ", "bar.warp.sync", kDropped, 4,
     "the warp steps together right before or right behind, with no access between"},
    {Arch::kSm90, "", "store dQ", "bar.sync", kDropped, 1,
     "takes the last turn, so that no barrier is left half full when the CTA exits"},
    {Arch::kSm90, "", "add dQ", "fence.proxy.async.global", kDropped, 2,
     "at one end of a turn; there is one at the other end"},
    {Arch::kSm90, "", "add dQ", "cp.async.bulk.wait_group", kDropped, 1,
     "shared memory is read already; the writes end with the kernel"},
    {Arch::kSm90, "", "Q, dO", "cp.async.bulk.wait_group", kDropped, 1,
     "shared memory is read already; the writes end with the kernel"},
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
