// tcgen05.mma kind::f16 and tcgen05.commit: one thread issues, the tensor core executes in issue order.
#include <fmt/format.h>

#include <bit>

#include "emulator/machine/cluster.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

int only_lane(const Warp& warp, const Step& step, LaneMask mask) {
  if (!std::has_single_bit(mask)) {
    warp.fault(step,
               fmt::format("lanes {:#010x} execute it; a single thread must (elect.sync chooses one)", mask));
  }
  return std::countr_zero(mask);
}

// Words of lanes of D that are not written: 32 lanes each, of both CTAs in a pair.
template <bool kPair>
inline constexpr int kLaneWords = kPair ? 8 : 4;

template <bool kFromTensorMemory, bool kPair>
void multiply(Warp& warp, const Step& step, LaneMask mask) {
  const int lane = only_lane(warp, step, mask);
  const auto word = [&](Slot slot) { return warp.lanes<std::uint32_t>(slot)[lane]; };
  MatrixOperation operation;
  operation.by = {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(lane)};
  operation.kind = MatrixOperation::Kind::kMultiply;
  operation.a_in_tensor_memory = kFromTensorMemory;
  operation.in_pair = kPair;
  operation.d = word(step.d);
  operation.a = kFromTensorMemory ? word(step.a) : warp.lanes<std::uint64_t>(step.a)[lane];
  operation.b = warp.lanes<std::uint64_t>(step.b)[lane];
  operation.instruction = word(step.c);
  for (int w = 0; w < kLaneWords<kPair>; ++w) {
    if (step.list[w] != kNone) operation.disabled_lanes[w] = word(step.list[w]);
  }
  operation.accumulate = (warp.predicate(step.list[kLaneWords<kPair>]) >> lane & 1) != 0;
  check(warp.cta(), operation);
  operation.by.operation = announce(warp, step, LaneMask{1} << lane, Operation::Kind::kProduct);
  warp.cta().work.submit(operation);
}

template <class Width, bool kMulticast>
void commit(Warp& warp, const Step& step, LaneMask mask) {
  const int lane = only_lane(warp, step, mask);
  MatrixOperation operation;
  operation.by = {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(lane)};
  operation.kind = MatrixOperation::Kind::kCommit;
  operation.mbarrier = shared_address<Width>(warp, step, step.a, step.immediate, lane);
  operation.ranks = static_cast<std::uint16_t>(1u << rank_of(operation.mbarrier));
  if (kMulticast) operation.ranks = warp.lanes<std::uint16_t>(step.list[0])[lane];
  if (operation.ranks == 0) warp.fault(step, "a multicast to no CTA: its mask is 0");
  check(warp.cta(), operation);
  operation.by.operation =
      announce(warp, step, LaneMask{1} << lane, Operation::Kind::kCommit, 0,
               &warp.cta().cluster().cta(rank_of(operation.mbarrier)), on_rank(operation.mbarrier, 0));
  warp.cta().work.submit(operation);
}

template <bool kFromTensorMemory, bool kPair>
Body select_multiply(Match&) {
  return multiply<kFromTensorMemory, kPair>;
}

template <bool kMulticast>
Body select_commit(Match& match) {
  return match.bytes('a') == 8 ? commit<std::uint64_t, kMulticast> : commit<std::uint32_t, kMulticast>;
}

#define COLLECTOR "{.collector::a::fill|.collector::a::use|.collector::a::lastuse|.collector::a::discard}"
#define COMMIT "tcgen05.commit(.cta_group::1|.cta_group::2).mbarrier::arrive::one"

constexpr Row kRows[] = {
    {"tcgen05.mma.cta_group::1.kind::f16" COLLECTOR, "[d:r32], a:r64, b:r64, c:r32, list:{r32}x4?, !l:p",
     select_multiply<false, false>},
    {"tcgen05.mma.cta_group::1.kind::f16" COLLECTOR, "[d:r32], [a:r32], b:r64, c:r32, list:{r32}x4?, !l:p",
     select_multiply<true, false>},
    {"tcgen05.mma.cta_group::2.kind::f16" COLLECTOR, "[d:r32], a:r64, b:r64, c:r32, list:{r32}x8?, !l:p",
     select_multiply<false, true>},
    {"tcgen05.mma.cta_group::2.kind::f16" COLLECTOR, "[d:r32], [a:r32], b:r64, c:r32, list:{r32}x8?, !l:p",
     select_multiply<true, true>},
    {COMMIT "{.shared::cluster}.b64", "[a]", select_commit<false>},
    {COMMIT "{.shared::cluster}.multicast::cluster.b64", "[a], l:r16", select_commit<true>},
};

}  // namespace

std::span<const Row> matrix_rows() {
  return kRows;
}

}  // namespace flashback::emulator
