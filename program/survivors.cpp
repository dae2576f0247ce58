#include "program/survivors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "attention/problem.h"

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
    {Arch::kSm90, "pair", "", "fence.mbarrier_init", kDropped, 1,
     "the barrier of the cluster that follows releases and acquires"},
    {Arch::kSm90, "pair", "", "bar.sync", kDropped, 1,
     "brings the warps together in front of the barrier of the cluster, which waits for all threads"},
    {Arch::kSm90, "pair", "", "bar.warp.sync", kDropped, 1,
     "of compute, when it has read K and V: K has one place, which is waited for first, and is free at the "
     "end "
     "of the item"},
    {Arch::kSm90, "pair", "add dQ", "mbarrier.try_wait", kDropped, 1,
     "of load, for V: it has waited for the place of K, which is free at the end of the item"},
    {Arch::kSm90, "pair", "dK", "bar.warp.sync", kDropped, 1,
     "the warp steps together right before, with no access between"},
    {Arch::kSm90, "pair", "dQ", "bar.warp.sync", kDropped, 1,
     "the lane that gives the operands back has waited for the products itself"},
    {Arch::kSm90, "pair", "dQ", "wgmma.fence", kDropped, 1,
     "of the peer's dS: the registers have not changed since the product of the CTA's own"},
    {Arch::kSm90, "pair", "store dQ", "bar.warp.sync", kDropped, 1,
     "the warp steps together right before, with no access between"},
    {Arch::kSm90, "pair", "Q, dO", "mbarrier.try_wait", kDropped, 2,
     "of send, for dV and for dK, so that no phase goes by unseen: one of the two would do, as dK is stored "
     "after dV"},
    {Arch::kSm90, "pair", "send dS", "cp.async.bulk.wait_group", kDropped, 1,
     "shared memory is read already; the writes end with the kernel"},
    {Arch::kSm90, "pair", "send dS", "bar.warp.sync", kDropped, 1,
     "brings the warps together in front of the barrier of the cluster, which waits for all lanes"},
    {Arch::kSm90, "", "", "fence.mbarrier_init", kDropped, 1,
     "the CTA is alone in its cluster, and its threads meet at a barrier before they use an mbarrier"},
    {Arch::kSm90, "backward", "", "bar.warp.sync", kDropped, 1,
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
    {Arch::kSm90, "", "store dQ", "bar.warp.sync", kDropped, 5,
     "the warp steps together right before or right behind, with no access between"},
    {Arch::kSm90, "", "store dQ", "bar.sync", kDropped, 1,
     "takes the last turn, so that no barrier is left half full when the CTA exits"},
    {Arch::kSm90, "", "add dQ", "fence.proxy.async.global", kDropped, 2,
     "at one end of a turn; there is one at the other end"},
    {Arch::kSm90, "", "add dQ", "cp.async.bulk.wait_group", kDropped, 1,
     "shared memory is read already; the writes end with the kernel"},
    {Arch::kSm90, "", "Q, dO", "cp.async.bulk.wait_group", kDropped, 1,
     "shared memory is read already; the writes end with the kernel"},
    {Arch::kSm90, "", "add dV, dK", "cp.async.bulk.wait_group", kDropped, 2,
     "shared memory is read already; the writes end with the kernel"},
    {Arch::kSm90, "", "add dV, dK", "fence.proxy.async.global", kDropped, 2,
     "at one end of a turn; there is one at the other end"},
    // --- sm_90a, head dimension 128
    {Arch::kSm90, "backward_sm90_d128", "dP", "wgmma.fence", kDropped, 3,
     "its registers have not changed since the fence before S; brings the four warps into the product "
     "together"},
    {Arch::kSm90, "backward_sm90_d128", "S", "wgmma.fence", kDropped, 2,
     "its registers have not changed since the fence before dQ; brings the four warps into the product "
     "together"},
    {Arch::kSm90, "backward_sm90_d128", "dQ", "wgmma.fence", kDropped, 3,
     "its registers have not changed since the fence before dP; brings the four warps into the product "
     "together"},
    {Arch::kSm90, "backward_sm90_d128", "softmax", "bar.warp.sync", kDropped, 1,
     "of the first tile, whose only signal there is that Q is free: accumulate says so too, behind dS"},
    {Arch::kSm90, "backward_sm90_d128", "dS", "bar.sync", kDropped, 3,
     "a warp's part of dQ reads the rows of dS that the warp itself has stored, as the emulator takes it; "
     "the "
     "ISA does not say which rows a warp reads, so the barrier stays"},
    {Arch::kSm90, "backward_sm90_d128", "dS", "bar.warp.sync", kDropped, 2,
     "right behind the barrier of the warpgroup"},
    {Arch::kSm90, "backward_sm90_d128", "store dQ", "mbarrier.try_wait", kDropped, 2,
     "of compute, for P and for dS, before it says that the item is over: keeps that from being said before "
     "accumulate has seen those of the last tile; it would have to lag behind a whole dQ, which no schedule "
     "here makes it do"},
    {Arch::kSm90, "backward_sm90_d128", "store dQ", "mbarrier.try_wait", kDropped, 1,
     "of accumulate, for the rows: whoever has stored P or dS has waited for them"},
    {Arch::kSm90, "backward_sm90_d128", "dV, dK", "bar.warp.sync", kDropped, 3,
     "right behind another, or where the lane that arrives has done, or waited for, all that it speaks for"},
    {Arch::kSm90, "backward_sm90_d128", "dV, dK", "mbarrier.try_wait", kDropped, 1,
     "of load, for a place of work: it has loaded the keys of the item before, and so the one before that is "
     "over"},
    {Arch::kSm90, "backward_sm90_d128", "Q, dO", "bar.warp.sync", kDropped, 2,
     "of reduce: one is right behind the other"},
    // --- sm_90a, forward
    {Arch::kSm90, "forward", "pass over", "mbarrier.try_wait", kDropped, 2,
     "the group does not read the tile, and turns keep it in step with groups that wait for it"},
    {Arch::kSm90, "forward", "pass over", "bar.warp.sync", kDropped, 5,
     "the warp has not read what it hands back"},
    {Arch::kSm90, "forward", "negate Q", "bar.warp.sync", kDropped, 1,
     "all lanes issue the product together, each behind its own stores and fence, and in the emulator a warp "
     "reads its own sixteen rows of A"},
    {Arch::kSm90, "forward", "S, O", "wgmma.fence", kDropped, 3,
     "before P V: its registers have not changed since the fence before S; brings the four warps into the "
     "product together"},
    {Arch::kSm90, "window", "S, O", "wgmma.fence", kDropped, 1,
     "before S, of the tiles that rows see in part at their last keys: there are two at most, and the loop "
     "has the second one alone; the fence before P V is behind all changes of registers"},
    {Arch::kSm90, "forward", "S, O", "bar.warp.sync", kDropped, 3,
     "no lane has read K itself, and the warp has waited for its product together"},
    {Arch::kSm90, "forward", "S", "bar.warp.sync", kDropped, 1,
     "the lane that gives K back has waited for the product itself"},
    {Arch::kSm90, "forward", "softmax", "bar.warp.sync", kDropped, 3,
     "the lane that gives V back has waited for the product itself"},
    {Arch::kSm90, "forward", "O", "bar.warp.sync", kDropped, 1,
     "no lane has read V itself, and the warp has waited for its product together"},
    {Arch::kSm90, "forward", "store O", "mbarrier.try_wait", kDropped, 1,
     "of load, for a place of work: Q has come into a place that all left at the end of an item, and work "
     "has "
     "a place more"},
    {Arch::kSm90, "forward", "", "bar.warp.sync", kDropped, 1,
     "of compute, before it gives work back: the warp has stepped together since it read it"},
    {Arch::kSm90, "forward", "K, V", "bar.sync", kDropped, 1,
     "takes the last turn, so that no barrier is left half full when the CTA exits"},
    // --- sm_100a, forward
    {Arch::kSm100, "forward_sm100_d64 dense", "softmax", "mbarrier.try_wait", kDropped, 1,
     "of an item's first tile, the only one that is seen in part: its S comes behind all products before"},
    {Arch::kSm100, "forward_sm100_d64 dense", "softmax", "tcgen05.fence::after_thread_sync", kDropped, 1,
     "behind the wait for P, of an item's first tile"},
    {Arch::kSm100, "forward_sm100_d128 dense", "softmax", "mbarrier.try_wait", kDropped, 1,
     "of softmax, for the numbers before to be read: S comes behind a P V, which waits for O, whose warps "
     "have "
     "read them"},
    {Arch::kSm100, "forward_sm100_d128 dense", "rescale O", "mbarrier.try_wait", kDropped, 1,
     "for the P V before: the numbers come from an S that is behind it"},
    {Arch::kSm100, "forward_sm100_d128", "load S", "tcgen05.wait::ld", kDropped, 1,
     "each register is used before P is stored, and a use waits for its load"},
    {Arch::kSm100, "forward", "rescale O", "tcgen05.wait::ld", kDropped, 4,
     "each register is used before it is stored, and a use waits for its load"},
    {Arch::kSm100, "forward", "store O", "tcgen05.wait::ld", kDropped, 3,
     "of all blocks but the last: each register is used before the signal, and a use waits for its load"},
    {Arch::kSm100, "forward", "store O", "bar.warp.sync", kDropped, 1,
     "behind the last slab: the warp steps together when it takes the next item's numbers"},
    {Arch::kSm100, "forward", "S", "mbarrier.try_wait", kDropped, 1,
     "that all products are over is known by then; it keeps the CTA until the last commits have arrived in "
     "its "
     "shared memory, which the checker does not look for"},
    {Arch::kSm100, "forward", "S", "bar.warp.sync", kDropped, 1,
     "brings the warps together in front of a barrier of the CTA, which waits for all lanes"},
    {Arch::kSm100, "forward", "S", "tcgen05.fence::before_thread_sync", kDropped, 1,
     "before tensor memory is freed: behind the fence at the last signal no access follows"},
};

bool has_all_words(std::string_view name, std::string_view words) {
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (name.find(words.substr(begin, end - begin)) == name.npos) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

SurvivorReasons::SurvivorReasons() : uses_(std::size(kSurvivors)) {}

void SurvivorReasons::begin_kernel(Arch arch, std::string_view entry) {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const Survivor& survivor = kSurvivors[i];
    const bool meant = survivor.arch == arch && has_all_words(entry, survivor.entry);
    uses_[i].left = meant ? survivor.count : 0;
  }
}

std::optional<std::string> SurvivorReasons::explain(const emulator::checking::Mutation& mutation) {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const Survivor& survivor = kSurvivors[i];
    if (uses_[i].left == 0 || survivor.change != mutation.change || survivor.section != mutation.section)
      continue;
    if (!mutation.instruction.starts_with(survivor.opcode)) continue;
    --uses_[i].left;
    uses_[i].most = std::max(uses_[i].most, survivor.count - uses_[i].left);
    return std::string(survivor.reason);
  }
  return {};
}

std::vector<std::string> SurvivorReasons::stale() const {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const Survivor& survivor = kSurvivors[i];
    if (uses_[i].most == survivor.count) continue;
    sentences.push_back(fmt::format(
        "survivors.cpp explains {} of `{}` {} in section \"{}\" of {} kernels with \"{}\" in their names; "
        "at most {} survive in any",
        survivor.count, survivor.opcode, survivor.change, survivor.section, name(survivor.arch),
        survivor.entry, uses_[i].most));
  }
  return sentences;
}

}  // namespace flashback::program
