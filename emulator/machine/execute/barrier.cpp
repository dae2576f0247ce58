// bar/barrier, barrier.cluster, mbarrier, fences, setmaxnreg, griddepcontrol.
#include <fmt/format.h>

#include <bit>
#include <optional>
#include <string_view>

#include "emulator/machine/cluster.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

template <Body body>
Body always(Match&) {
  return body;
}

void nothing(Warp&, const Step&, LaneMask) {}

// ---- named barriers

// An operand that all lanes must agree on.
std::uint32_t uniform(const Warp& warp, const Step& step, Slot slot, LaneMask mask, const char* what) {
  const std::uint32_t* value = warp.lanes<std::uint32_t>(slot);
  const std::uint32_t first = value[std::countr_zero(mask)];
  std::uint32_t differs = 0;
  each_lane(mask, [&](int l) { differs |= value[l] ^ first; });
  if (differs == 0) [[likely]]
    return first;
  each_lane(mask, [&](int l) {
    if (value[l] != first)
      warp.fault(step, fmt::format("its lanes name {} {} and {}", what, first, value[l]));
  });
  return first;
}

std::uint32_t arrive_at(Warp& warp, const Step& step, std::uint32_t id, LaneMask mask, std::uint32_t trues) {
  std::uint32_t threads = 0;
  if (step.b != kNone) {
    threads = uniform(warp, step, step.b, mask, "thread counts");
    if (threads == 0) warp.fault(step, "a barrier for 0 threads; the count must be a multiple of 32 above 0");
  }
  const std::uint32_t generation = warp.cta().barriers.arrive(id, threads, trues);
  if (Observer* observer = warp.cta().observer()) [[unlikely]]
    observer->barrier_joined(warp, step, id, threads, generation);
  return generation;
}

// True once the barrier is passed; else the instruction is put off, its arrival noted.
bool pass(Warp& warp, const Step& step, LaneMask mask, std::uint32_t* id, LaneMask trues = 0) {
  if (!warp.gathers(kAllLanes)) return false;
  *id = uniform(warp, step, step.a, mask, "barriers");
  const bool arrived = warp.waited().kind == Wait::Kind::kBarrier;
  const std::uint32_t generation =
      arrived ? warp.waited().when
              : arrive_at(warp, step, *id, mask, static_cast<std::uint32_t>(std::popcount(trues & mask)));
  if (warp.cta().barriers.passed(*id, generation)) {
    if (Observer* observer = warp.cta().observer()) [[unlikely]]
      observer->barrier_passed(warp, step, *id, generation);
    return true;
  }
  warp.wait_here({Wait::Kind::kBarrier, *id, generation});
  return false;
}

void barrier_sync(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t id;
  pass(warp, step, mask, &id);
}

void barrier_arrive(Warp& warp, const Step& step, LaneMask mask) {
  if (!warp.gathers(kAllLanes)) return;
  arrive_at(warp, step, uniform(warp, step, step.a, mask, "barriers"), mask, 0);
}

void barrier_count(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t id;
  if (!pass(warp, step, mask, &id, warp.predicate(step.c))) return;
  std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
  const std::uint32_t trues = warp.cta().barriers.votes(id).trues;
  each_lane(mask, [&](int l) { d[l] = trues; });
}

template <bool kAll>
void barrier_vote(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t id;
  if (!pass(warp, step, mask, &id, warp.predicate(step.c))) return;
  const NamedBarriers::Votes votes = warp.cta().barriers.votes(id);
  const bool result = kAll ? votes.trues == votes.threads : votes.trues != 0;
  warp.set_predicate(step.d, result ? kAllLanes : 0, mask);
}

// ---- the cluster barrier. Warps arrive as a whole: the instruction waits for all lanes that have not exited

bool whole_warp_arrives(Warp& warp, const Step& step, LaneMask mask) {
  if (!warp.gathers(kAllLanes)) return false;
  if (mask != warp.live()) {
    warp.fault(step, fmt::format("lanes {:#010x} of {:#010x} execute it; all that have not exited must", mask,
                                 warp.live()));
  }
  return true;
}

void cluster_arrive(Warp& warp, const Step& step, LaneMask mask) {
  if (!whole_warp_arrives(warp, step, mask)) return;
  const std::uint32_t generation = warp.cta().cluster().barrier.arrive(warp.cta().cluster_warp(warp.index()));
  if (Observer* observer = warp.cta().observer()) [[unlikely]]
    observer->cluster_barrier_joined(warp, step, generation);
}

void cluster_wait(Warp& warp, const Step& step, LaneMask mask) {
  if (!whole_warp_arrives(warp, step, mask)) return;
  const std::optional<std::uint32_t> generation =
      warp.cta().cluster().barrier.pass(warp.cta().cluster_warp(warp.index()));
  if (!generation) {
    warp.wait_here({Wait::Kind::kCluster, 0, 0});
  } else if (Observer* observer = warp.cta().observer()) {
    observer->cluster_barrier_passed(warp, step, *generation);
  }
}

// ---- mbarriers. Width: type of the address register. Those of peers take arrivals and transactions only

template <class Width>
std::uint32_t object_address(const Warp& warp, const Step& step, int lane) {
  return shared_address<Width>(warp, step, step.a, step.immediate, lane);
}

template <class Width, Reach reach = Reach::kCta>
MbarrierAccess object(Warp& warp, const Step& step, int lane) {
  shared_object<Width, reach>(warp, step, step.a, step.immediate, lane, 8, "an mbarrier");
  const std::uint32_t address = object_address<Width>(warp, step, lane);
  Cta& owner = warp.cta().cluster().cta(rank_of(address));
  return {owner, address, {&warp, &step, LaneMask{1} << lane}};
}

template <class Width, Reach reach = Reach::kCta, class F>
void each_object(Warp& warp, const Step& step, LaneMask mask, F&& f) {
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    f(object<Width, reach>(warp, step, l), l);
  }
}

// The state of a phase is not known to a peer.
template <class Width>
void refuse_state_of_peer(Warp& warp, const Step& step, LaneMask mask) {
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    const std::uint32_t address = object_address<Width>(warp, step, l);
    if (rank_of(address) == warp.cta().rank()) continue;
    warp.fault(step,
               fmt::format("lane {} asks for the state of an mbarrier of rank {}; the destination must be "
                           "`_` where the mbarrier is a peer's",
                           l, rank_of(address)));
  }
}

template <class Width>
struct Init {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    const std::uint32_t* count = warp.lanes<std::uint32_t>(step.b);
    each_object<Width>(warp, step, mask, [&](MbarrierAccess barrier, int l) { barrier.init(count[l]); });
  }
};

template <class Width>
struct Invalidate {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    each_object<Width>(warp, step, mask, [](MbarrierAccess barrier, int) { barrier.invalidate(); });
  }
};

// The state that an arrival returns is the object before it: its top bit is the phase's parity.
template <class Width, Reach reach>
struct Arrive {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    const std::uint32_t* count = step.b == kNone ? nullptr : warp.lanes<std::uint32_t>(step.b);
    std::uint64_t* state = step.d == kNone ? nullptr : warp.lanes<std::uint64_t>(step.d);
    if (reach == Reach::kCluster && state != nullptr) refuse_state_of_peer<Width>(warp, step, mask);
    each_object<Width, reach>(warp, step, mask, [&](MbarrierAccess barrier, int l) {
      if (state != nullptr) state[l] = barrier.bits();
      barrier.arrive(count == nullptr ? 1 : count[l]);
    });
  }
};

template <class Width, Reach reach>
struct ExpectAndArrive {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    const std::uint32_t* bytes = warp.lanes<std::uint32_t>(step.b);
    std::uint64_t* state = step.d == kNone ? nullptr : warp.lanes<std::uint64_t>(step.d);
    if (reach == Reach::kCluster && state != nullptr) refuse_state_of_peer<Width>(warp, step, mask);
    each_object<Width, reach>(warp, step, mask, [&](MbarrierAccess barrier, int l) {
      if (state != nullptr) state[l] = barrier.bits();
      barrier.expect_and_arrive(bytes[l]);
    });
  }
};

template <class Width, Reach reach>
struct Expect {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    const std::uint32_t* bytes = warp.lanes<std::uint32_t>(step.b);
    each_object<Width, reach>(warp, step, mask,
                              [&](MbarrierAccess barrier, int l) { barrier.expect(bytes[l]); });
  }
};

template <class Width, Reach reach>
struct Complete {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    const std::uint32_t* bytes = warp.lanes<std::uint32_t>(step.b);
    each_object<Width, reach>(warp, step, mask,
                              [&](MbarrierAccess barrier, int l) { barrier.complete(bytes[l]); });
  }
};

// Tells the observer whose wait succeeded: lanes with the same object and parity together.
template <class Width, class F>
void tell_waited(Warp& warp, const Step& step, LaneMask done, F&& parity_of) {
  while (done != 0) {
    const int first = std::countr_zero(done);
    const std::uint32_t address = object_address<Width>(warp, step, first), parity = parity_of(first);
    LaneMask same = 0;
    each_lane(done, [&](int l) {
      same |= LaneMask{object_address<Width>(warp, step, l) == address && parity_of(l) == parity} << l;
    });
    MbarrierAccess(warp.cta(), address, {&warp, &step, same}).waited(parity);
    done &= ~same;
  }
}

// Lanes whose phase is over. `parity_of(lane)`: of the phase that is waited for.
template <class Width, class F>
LaneMask phases_done(Warp& warp, const Step& step, LaneMask mask, F&& parity_of) {
  LaneMask done = 0;
  each_object<Width>(warp, step, mask, [&](MbarrierAccess barrier, int l) {
    done |= LaneMask{barrier.phase_done(parity_of(l))} << l;
  });
  if (warp.cta().observer() != nullptr) [[unlikely]]
    tell_waited<Width>(warp, step, done, parity_of);
  return done;
}

template <class Width, bool kIsParity>
LaneMask phases_done(Warp& warp, const Step& step, LaneMask mask, std::uint32_t* first_parity) {
  const auto parity_of = [&](int l) {
    return kIsParity ? warp.lanes<std::uint32_t>(step.b)[l] & 1
                     : static_cast<std::uint32_t>(warp.lanes<std::uint64_t>(step.b)[l] >> 63);
  };
  *first_parity = parity_of(std::countr_zero(mask));
  return phases_done<Width>(warp, step, mask, parity_of);
}

// Time passes on a GPU between two phases of an mbarrier; here a warp may issue work, find it done, and be
// through the next phase before those that wait for the first have looked, whose parity then never comes. So
// whoever gets a phase gives way. The random schedule does not: orders like this are what it is for.
void give_way(Warp& warp) {
  if (warp.cta().launch().schedule.completion != Completion::kRandom) warp.yield();
}

// try_wait may wait as long as it likes: it does so until at least one lane's phase is over.
template <class Width, bool kIsParity>
void try_wait(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t parity;
  const LaneMask done = phases_done<Width, kIsParity>(warp, step, mask, &parity);
  if (done == 0) {
    const std::uint32_t address =
        shared_address<Width>(warp, step, step.a, step.immediate, std::countr_zero(mask));
    warp.wait_here({Wait::Kind::kMbarrier, address, parity});
    return;
  }
  warp.set_predicate(step.d, done, mask);
  give_way(warp);
}

template <class Width, bool kIsParity>
void test_wait(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t parity;
  const LaneMask done = phases_done<Width, kIsParity>(warp, step, mask, &parity);
  warp.set_predicate(step.d, done, mask);
  if (done == 0) {
    warp.poll();
  } else {
    give_way(warp);
  }
}

template <class Width>
struct TryWait {
  static constexpr Body body = try_wait<Width, false>;
};
template <class Width>
struct TryWaitParity {
  static constexpr Body body = try_wait<Width, true>;
};
template <class Width>
struct TestWait {
  static constexpr Body body = test_wait<Width, false>;
};
template <class Width>
struct TestWaitParity {
  static constexpr Body body = test_wait<Width, true>;
};

template <template <class> class Op>
Body by_width(Match& match) {
  return match.bytes('a') == 8 ? Body{Op<std::uint64_t>::body} : Body{Op<std::uint32_t>::body};
}

// Without a state space, or with .shared::cluster, the object may be a peer's.
template <template <class, Reach> class Op>
Body by_reach(Match& match) {
  const bool own = match.has(".shared") && !match.has(".shared::cluster");
  if (match.bytes('a') == 8) {
    return own ? Op<std::uint64_t, Reach::kCta>::body : Op<std::uint64_t, Reach::kCluster>::body;
  }
  return own ? Op<std::uint32_t, Reach::kCta>::body : Op<std::uint32_t, Reach::kCluster>::body;
}

// ---- registers

void set_registers(Warp& warp, const Step& step, bool increase) {
  if (!warp.gathers(kAllLanes)) return;
  const auto registers = static_cast<std::uint32_t>(step.immediate);
  RegisterPool& pool = warp.cta().register_pool;
  const auto index = static_cast<std::uint32_t>(warp.index());
  if (!increase) {
    pool.release(index, registers);
  } else if (!pool.acquire(index, registers)) {
    warp.wait_here({Wait::Kind::kRegisters, registers, 0});
  }
}

void increase_registers(Warp& warp, const Step& step, LaneMask) {
  set_registers(warp, step, true);
}
void decrease_registers(Warp& warp, const Step& step, LaneMask) {
  set_registers(warp, step, false);
}

#define CTA_SPACE "{.shared|.shared::cta}"
#define CLUSTER_SPACE "{.shared|.shared::cta|.shared::cluster}"
#define RELEASE "{.release|.relaxed}{.cta|.cluster}"
#define ACQUIRE "{.acquire|.relaxed}{.cta|.cluster}"

constexpr Row kRows[] = {
    {"bar{.cta}.sync", "a:r32, b:r32?", always<barrier_sync>},
    {"bar{.cta}.arrive", "a:r32, b:r32", always<barrier_arrive>},
    {"bar{.cta}.red.popc.u32", "d:r32, a:r32, !c:p", always<barrier_count>},
    {"bar{.cta}.red.popc.u32", "d:r32, a:r32, b:r32, !c:p", always<barrier_count>},
    {"bar{.cta}.red.and.pred", "d:p, a:r32, !c:p", always<barrier_vote<true>>},
    {"bar{.cta}.red.and.pred", "d:p, a:r32, b:r32, !c:p", always<barrier_vote<true>>},
    {"bar{.cta}.red.or.pred", "d:p, a:r32, !c:p", always<barrier_vote<false>>},
    {"bar{.cta}.red.or.pred", "d:p, a:r32, b:r32, !c:p", always<barrier_vote<false>>},
    {"barrier{.cta}.sync{.aligned}", "a:r32, b:r32?", always<barrier_sync>},
    {"barrier{.cta}.arrive{.aligned}", "a:r32, b:r32", always<barrier_arrive>},
    {"barrier{.cta}.red.popc{.aligned}.u32", "d:r32, a:r32, !c:p", always<barrier_count>},
    {"barrier{.cta}.red.popc{.aligned}.u32", "d:r32, a:r32, b:r32, !c:p", always<barrier_count>},
    {"barrier{.cta}.red.and{.aligned}.pred", "d:p, a:r32, !c:p", always<barrier_vote<true>>},
    {"barrier{.cta}.red.and{.aligned}.pred", "d:p, a:r32, b:r32, !c:p", always<barrier_vote<true>>},
    {"barrier{.cta}.red.or{.aligned}.pred", "d:p, a:r32, !c:p", always<barrier_vote<false>>},
    {"barrier{.cta}.red.or{.aligned}.pred", "d:p, a:r32, b:r32, !c:p", always<barrier_vote<false>>},

    {"barrier.cluster.arrive{.release|.relaxed}{.aligned}", "", always<cluster_arrive>},
    {"barrier.cluster.wait{.acquire}{.aligned}", "", always<cluster_wait>},

    {"mbarrier.init" CTA_SPACE ".b64", "[a], b:r32", by_width<Init>},
    {"mbarrier.inval" CTA_SPACE ".b64", "[a]", by_width<Invalidate>},
    {"mbarrier.arrive" RELEASE CLUSTER_SPACE ".b64", "d:r64, [a], b:r32?", by_reach<Arrive>},
    {"mbarrier.arrive" RELEASE CLUSTER_SPACE ".b64", "[a], b:r32?", by_reach<Arrive>},
    {"mbarrier.arrive.expect_tx" RELEASE CLUSTER_SPACE ".b64", "d:r64, [a], b:r32",
     by_reach<ExpectAndArrive>},
    {"mbarrier.arrive.expect_tx" RELEASE CLUSTER_SPACE ".b64", "[a], b:r32", by_reach<ExpectAndArrive>},
    {"mbarrier.expect_tx{.relaxed}{.cta|.cluster}" CLUSTER_SPACE ".b64", "[a], b:r32", by_reach<Expect>},
    {"mbarrier.complete_tx{.relaxed}{.cta|.cluster}" CLUSTER_SPACE ".b64", "[a], b:r32", by_reach<Complete>},
    {"mbarrier.try_wait" ACQUIRE CTA_SPACE ".b64", "d:p, [a], b:r64, c:r32?", by_width<TryWait>},
    {"mbarrier.try_wait.parity" ACQUIRE CTA_SPACE ".b64", "d:p, [a], b:r32, c:r32?", by_width<TryWaitParity>},
    {"mbarrier.test_wait" ACQUIRE CTA_SPACE ".b64", "d:p, [a], b:r64", by_width<TestWait>},
    {"mbarrier.test_wait.parity" ACQUIRE CTA_SPACE ".b64", "d:p, [a], b:r32", by_width<TestWaitParity>},

    // Memory of this machine is always coherent: fences order nothing that is not ordered already.
    {"fence{.sc|.acq_rel|.acquire|.release}(.cta|.cluster|.gpu|.sys)", "", always<nothing>},
    {"fence.acquire.sync_restrict::shared::cluster.cluster", "", always<nothing>},
    {"membar(.cta|.gl|.sys)", "", always<nothing>},
    {"fence.proxy.alias", "", always<nothing>},
    {"fence.proxy.async{.global|.shared::cta|.shared::cluster}", "", always<nothing>},
    {"fence.proxy.tensormap::generic.release(.cta|.cluster|.gpu|.sys)", "", always<nothing>},
    {"fence.proxy.tensormap::generic.acquire(.cta|.cluster|.gpu|.sys)", "[a:r64], i:imm", always<nothing>},
    {"fence.mbarrier_init.release.cluster", "", always<nothing>},
    {"griddepcontrol(.launch_dependents|.wait)", "", always<nothing>},  // launches run one after another

    {"setmaxnreg.inc.sync.aligned.u32", "i:imm", always<increase_registers>},
    {"setmaxnreg.dec.sync.aligned.u32", "i:imm", always<decrease_registers>},
};

}  // namespace

std::span<const Row> barrier_rows() {
  return kRows;
}

}  // namespace flashback::emulator
