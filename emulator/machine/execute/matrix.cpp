// tcgen05.mma kind::f16 and tcgen05.commit: one thread issues, the tensor core executes in issue order.
#include <fmt/format.h>

#include <bit>

#include "emulator/machine/cta.h"
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

template <bool kFromTensorMemory>
void multiply(Warp& warp, const Step& step, LaneMask mask) {
  const int lane = only_lane(warp, step, mask);
  const auto word = [&](Slot slot) { return warp.lanes<std::uint32_t>(slot)[lane]; };
  MatrixOperation operation;
  operation.by = {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(lane)};
  operation.kind = MatrixOperation::Kind::kMultiply;
  operation.a_in_tensor_memory = kFromTensorMemory;
  operation.d = word(step.d);
  operation.a = kFromTensorMemory ? word(step.a) : warp.lanes<std::uint64_t>(step.a)[lane];
  operation.b = warp.lanes<std::uint64_t>(step.b)[lane];
  operation.instruction = word(step.c);
  for (int w = 0; w < 4; ++w) {
    if (step.list[w] != kNone) operation.disabled_lanes[w] = word(step.list[w]);
  }
  operation.accumulate = (warp.predicate(step.list[4]) >> lane & 1) != 0;
  check(warp.cta(), operation);
  operation.by.operation = announce(warp, step, LaneMask{1} << lane, Operation::Kind::kProduct);
  warp.cta().work.submit(operation);
}

template <class Width>
struct Commit {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    const int lane = only_lane(warp, step, mask);
    MatrixOperation operation;
    operation.by = {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(lane)};
    operation.kind = MatrixOperation::Kind::kCommit;
    operation.mbarrier = shared_address<Width>(warp, step, step.a, step.immediate, lane);
    check(warp.cta(), operation);
    operation.by.operation = announce(warp, step, LaneMask{1} << lane, Operation::Kind::kCommit, 0,
                                      &warp.cta(), on_rank(operation.mbarrier, 0));
    warp.cta().work.submit(operation);
  }
};

template <bool kFromTensorMemory>
Body select_multiply(Match&) {
  return multiply<kFromTensorMemory>;
}

Body select_commit(Match& match) {
  return match.bytes('a') == 8 ? Body{Commit<std::uint64_t>::body} : Body{Commit<std::uint32_t>::body};
}

#define COLLECTOR "{.collector::a::fill|.collector::a::use|.collector::a::lastuse|.collector::a::discard}"

constexpr Row kRows[] = {
    {"tcgen05.mma.cta_group::1.kind::f16" COLLECTOR, "[d:r32], a:r64, b:r64, c:r32, list:{r32}x4?, !l:p",
     select_multiply<false>},
    {"tcgen05.mma.cta_group::1.kind::f16" COLLECTOR, "[d:r32], [a:r32], b:r64, c:r32, list:{r32}x4?, !l:p",
     select_multiply<true>},
    {"tcgen05.commit.cta_group::1.mbarrier::arrive::one{.shared::cluster}.b64", "[a]", select_commit},
};

}  // namespace

std::span<const Row> matrix_rows() {
  return kRows;
}

}  // namespace flashback::emulator
