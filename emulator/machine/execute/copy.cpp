// Asynchronous copies: cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk(.tensor), cp.async, their
// groups; mapa, getctarank.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string_view>

#include "emulator/machine/cluster.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

template <Body body>
Body always(Match&) {
  return body;
}

void nothing(Warp&, const Step&, LaneMask) {}

using Kind = Transfer::Kind;

std::uint32_t shared_at(const Warp& warp, const Step& step, Slot slot, std::int64_t displacement, int lane) {
  return shared_address<std::uint32_t>(warp, step, slot, displacement, lane);
}

Issuer issuer(const Warp& warp, const Step& step, int lane) {
  return {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(lane)};
}

// Of several mbarriers, the one that the instruction names.
std::uint64_t announce_signal(const Warp& warp, const Transfer& transfer, Operation::Kind kind,
                              std::uint32_t bytes) {
  const Cta& owner = warp.cta().cluster().cta(rank_of(transfer.mbarrier));
  return announce(warp, *transfer.by.step, LaneMask{1} << transfer.by.lane, kind, bytes, &owner,
                  on_rank(transfer.mbarrier, 0));
}

std::uint64_t announce(const Warp& warp, const Transfer& transfer) {
  const std::uint32_t bytes = transfer.tiled ? transfer.map.box_bytes() : transfer.bytes;
  const LaneMask lane = LaneMask{1} << transfer.by.lane;
  const Step& step = *transfer.by.step;
  switch (transfer.kind) {
    case Kind::kLoad:
      return announce_signal(warp, transfer, Operation::Kind::kBulkLoad, bytes);
    case Kind::kStore:
      return announce(warp, step, lane, Operation::Kind::kBulkStore, bytes);
    case Kind::kReduce:
      return announce(warp, step, lane, Operation::Kind::kBulkReduce, bytes);
    case Kind::kToPeer:
      return announce_signal(warp, transfer, Operation::Kind::kPeerCopy, bytes);
  }
  return 0;
}

void issue(Warp& warp, Transfer& transfer) {
  Cta& cta = warp.cta();
  if (!signals_mbarrier(transfer.kind))
    transfer.group = cta.work.bulk_group(transfer.by.warp, transfer.by.lane);
  check(cta, transfer);
  transfer.by.operation = announce(warp, transfer);
  cta.work.submit(transfer);
}

// The CTAs of a multicast, from a register of 16 bits.
std::uint16_t ranks_at(const Warp& warp, const Step& step, Slot slot, int lane) {
  const std::uint16_t ranks = warp.lanes<std::uint16_t>(slot)[lane];
  if (ranks == 0) warp.fault(step, "a multicast to no CTA: its mask is 0");
  return ranks;
}

// A destination that the opcode calls .shared::cta.
void require_own(const Warp& warp, const Step& step, std::uint32_t address) {
  if (rank_of(address) == warp.cta().rank()) return;
  warp.fault(step,
             fmt::format("its destination {:#x} is in rank {} of the cluster; .shared::cta is the CTA's own",
                         address, rank_of(address)));
}

// One copy for each executing thread. The displacement belongs to the first address: the destination.
template <Reach reach, bool kMulticast>
void load_bytes(Warp& warp, const Step& step, LaneMask mask) {
  each_lane(mask, [&](int l) {
    Transfer transfer;
    transfer.by = issuer(warp, step, l);
    transfer.kind = Kind::kLoad;
    transfer.shared = shared_at(warp, step, step.d, step.immediate, l);
    if (reach == Reach::kCta) require_own(warp, step, transfer.shared);
    transfer.global = warp.lanes<std::uint64_t>(step.a)[l];
    transfer.bytes = warp.lanes<std::uint32_t>(step.b)[l];
    transfer.mbarrier = shared_at(warp, step, step.c, 0, l);
    if (kMulticast) transfer.ranks = ranks_at(warp, step, step.list[0], l);
    issue(warp, transfer);
  });
}

void copy_to_peer(Warp& warp, const Step& step, LaneMask mask) {
  each_lane(mask, [&](int l) {
    Transfer transfer;
    transfer.by = issuer(warp, step, l);
    transfer.kind = Kind::kToPeer;
    transfer.peer = shared_at(warp, step, step.d, step.immediate, l);
    transfer.shared = shared_at(warp, step, step.a, 0, l);
    transfer.bytes = warp.lanes<std::uint32_t>(step.b)[l];
    transfer.mbarrier = shared_at(warp, step, step.c, 0, l);
    issue(warp, transfer);
  });
}

template <Kind kind>
void store_bytes(Warp& warp, const Step& step, LaneMask mask) {
  each_lane(mask, [&](int l) {
    Transfer transfer;
    transfer.by = issuer(warp, step, l);
    transfer.kind = kind;
    transfer.global = warp.lanes<std::uint64_t>(step.d)[l] + static_cast<std::uint64_t>(step.immediate);
    transfer.shared = shared_at(warp, step, step.a, 0, l);
    transfer.bytes = warp.lanes<std::uint32_t>(step.b)[l];
    issue(warp, transfer);
  });
}

// Takes the map at the generic address `at` and the coordinates, the first `rank` of the list.
void take_box(Warp& warp, const Step& step, int lane, std::uint64_t at, int rank, Transfer* transfer) {
  if (at % 64 != 0) warp.fault(step, fmt::format("a tensor map at {:#x}, which is not a multiple of 64", at));
  if (!warp.cta().constant_holds(at, sizeof(TensorMap))) {
    warp.fault(step, fmt::format("a tensor map at {:#x}; neither parameters nor an allocation hold it", at));
  }
  transfer->tiled = true;
  std::memcpy(&transfer->map, reinterpret_cast<const void*>(at), sizeof(TensorMap));
  if (transfer->map.magic == TensorMap::kMagic && transfer->map.rank != rank) {
    warp.fault(step, fmt::format("{} coordinates for a tensor map of rank {}", rank, transfer->map.rank));
  }
  for (int d = 0; d < rank; ++d) {
    transfer->coordinates[d] = warp.lanes<std::int32_t>(step.list[d])[lane];
  }
}

template <Reach reach, bool kMulticast, bool kPair>
void load_box(Warp& warp, const Step& step, LaneMask mask) {
  const int rank = step.list_size - kMulticast;
  each_lane(mask, [&](int l) {
    Transfer transfer;
    transfer.by = issuer(warp, step, l);
    transfer.kind = Kind::kLoad;
    transfer.shared = shared_at(warp, step, step.d, step.immediate, l);
    if (reach == Reach::kCta) require_own(warp, step, transfer.shared);
    take_box(warp, step, l, warp.lanes<std::uint64_t>(step.a)[l], rank, &transfer);
    transfer.mbarrier = shared_at(warp, step, step.b, 0, l);
    transfer.signals_pair = kPair;
    if (kMulticast) transfer.ranks = ranks_at(warp, step, step.list[rank], l);
    issue(warp, transfer);
  });
}

template <Kind kind>
void store_box(Warp& warp, const Step& step, LaneMask mask) {
  each_lane(mask, [&](int l) {
    Transfer transfer;
    transfer.by = issuer(warp, step, l);
    transfer.kind = kind;
    take_box(warp, step, l, warp.lanes<std::uint64_t>(step.d)[l] + static_cast<std::uint64_t>(step.immediate),
             step.list_size, &transfer);
    transfer.shared = shared_at(warp, step, step.a, 0, l);
    issue(warp, transfer);
  });
}

template <Body body>
Body of_rank(Match& match) {
  return match.list_size() == match.choice(0)[0] - '0' ? body : nullptr;
}

// Choices: rank, cta_group, destination, cta_group again: compilers put it in either place.
template <bool kMulticast>
Body select_box(Match& match) {
  if (match.list_size() != match.choice(0)[0] - '0' + kMulticast) return nullptr;
  if (!match.choice(1).empty() && !match.choice(3).empty()) return nullptr;
  const bool pair = match.has(".cta_group::2");
  if (match.choice(2) == "shared::cta") {
    return kMulticast || pair ? nullptr : Body{load_box<Reach::kCta, false, false>};
  }
  return pair ? load_box<Reach::kCluster, kMulticast, true> : load_box<Reach::kCluster, kMulticast, false>;
}

// Choices: destination.
Body select_bytes(Match& match) {
  return match.choice(0) == "shared::cta" ? load_bytes<Reach::kCta, false>
                                          : load_bytes<Reach::kCluster, false>;
}

// ---- groups

void commit_bulk(Warp& warp, const Step&, LaneMask mask) {
  each_lane(mask, [&](int l) { warp.cta().work.commit_bulk_group(warp.index(), l); });
}

// A store has read its source when it has taken effect: .read waits for the same.
void wait_bulk(Warp& warp, const Step& step, LaneMask mask) {
  const auto allowed = static_cast<std::uint32_t>(step.immediate);
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
    if (warp.cta().work.bulk_groups_done(warp.index(), std::countr_zero(rest), allowed)) continue;
    warp.wait_here({Wait::Kind::kBulkGroups, allowed, 0});
    return;
  }
}

void commit_copies(Warp& warp, const Step&, LaneMask mask) {
  each_lane(mask, [&](int l) { warp.cta().work.commit_copy_group(warp.index(), l); });
}

void wait_copies(Warp& warp, LaneMask mask, std::uint32_t allowed) {
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
    if (warp.cta().work.copy_groups_done(warp.index(), std::countr_zero(rest), allowed)) continue;
    warp.wait_here({Wait::Kind::kCopyGroups, allowed, 0});
    return;
  }
}

void wait_copy_groups(Warp& warp, const Step& step, LaneMask mask) {
  wait_copies(warp, mask, static_cast<std::uint32_t>(step.immediate));
}

// Uncommitted copies belong to the group that is open: it counts too.
void wait_all_copies(Warp& warp, const Step& step, LaneMask mask) {
  if (warp.waited().kind != Wait::Kind::kCopyGroups) commit_copies(warp, step, mask);
  wait_copies(warp, mask, 0);
}

// ---- cp.async. The row's literal, the size, is the immediate; displacements are added before.

void copy_elements(Warp& warp, const Step& step, LaneMask mask) {
  Cta& cta = warp.cta();
  ElementCopies copies;
  copies.by = issuer(warp, step, std::countr_zero(mask));
  copies.mask = mask;
  copies.bytes = static_cast<std::uint32_t>(step.immediate);
  if (copies.bytes != 4 && copies.bytes != 8 && copies.bytes != 16) {
    warp.fault(step, fmt::format("cp.async of {} bytes; 4, 8 and 16 are accepted", copies.bytes));
  }
  each_lane(mask, [&](int l) {
    copies.shared[l] = shared_at(warp, step, step.d, 0, l);
    copies.global[l] = warp.lanes<std::uint64_t>(step.a)[l];
    copies.from_bytes[l] = step.b == kNone ? copies.bytes : warp.lanes<std::uint32_t>(step.b)[l];
    copies.group[l] = cta.work.copy_group(warp.index(), l);
    if (copies.from_bytes[l] > copies.bytes) {
      warp.fault(step,
                 fmt::format("cp.async of {} bytes from {} of source", copies.bytes, copies.from_bytes[l]));
    }
    if (copies.shared[l] % copies.bytes != 0 || copies.global[l] % copies.bytes != 0) {
      warp.fault(
          step, fmt::format("lane {} copies {} bytes from {:#x} to {:#x}; both must be multiples of the size",
                            l, copies.bytes, copies.global[l], copies.shared[l]));
    }
    cta.shared(copies.shared[l], copies.bytes, "cp.async");
    if (copies.from_bytes[l] != 0 && !cta.global_holds(copies.global[l], copies.from_bytes[l])) {
      warp.fault(step,
                 fmt::format("lane {} reads {} bytes at {:#x}; no allocation holds them", l,
                             copies.from_bytes[l], copies.global[l]),
                 FaultKind::kIllegalAddress);
    }
  });
  copies.by.operation = announce(warp, step, mask, Operation::Kind::kCopy, copies.bytes);
  cta.work.submit(copies);
}

// Arrives when the thread's earlier cp.async are complete. Without .noinc it is one more arrival than was
// expected.
template <bool kIncrements>
void arrive_after_copies(Warp& warp, const Step& step, LaneMask mask) {
  ElementCopies arrivals;
  arrivals.by = issuer(warp, step, std::countr_zero(mask));
  arrivals.mask = mask;
  arrivals.is_arrival = true;
  each_lane(mask, [&](int l) {
    shared_object<std::uint32_t>(warp, step, step.a, step.immediate, l, 8, "an mbarrier");
    arrivals.shared[l] = shared_at(warp, step, step.a, step.immediate, l);
    if (kIncrements)
      MbarrierAccess(warp.cta(), arrivals.shared[l], {&warp, &step, LaneMask{1} << l}).add_pending(1);
  });
  arrivals.by.operation = announce(warp, step, mask, Operation::Kind::kCopyArrival, 0, &warp.cta(),
                                   on_rank(arrivals.shared[arrivals.by.lane], 0));
  warp.cta().work.submit(arrivals);
}

// ---- addresses in the cluster. A generic address (64 bits, no state space) keeps its window

template <class T, bool kGeneric>
T shared_value(const Warp& warp, const Step& step, int lane) {
  const T address = warp.lanes<T>(step.a)[lane];
  if (kGeneric && !in_shared_window(address)) {
    warp.fault(step, fmt::format("lane {} has the generic address {:#x}, which is not one of shared memory",
                                 lane, address));
  }
  return address;
}

template <class T, bool kGeneric>
void map_to_rank(Warp& warp, const Step& step, LaneMask mask) {
  const std::uint32_t* rank = warp.lanes<std::uint32_t>(step.b);
  const std::uint32_t size = warp.cta().cluster().size();
  T* d = warp.lanes<T>(step.d);
  each_lane(mask, [&](int l) {
    if (rank[l] >= size) {
      warp.fault(step, fmt::format("lane {} maps to rank {} of a cluster of {} CTA{}", l, rank[l], size,
                                   size == 1 ? "" : "s"));
    }
    const T a = shared_value<T, kGeneric>(warp, step, l);
    const T window = sizeof(T) == 8 ? a >> 16 >> 16 << 16 << 16 : 0;
    d[l] = window | on_rank(static_cast<std::uint32_t>(a), rank[l]);
  });
}

template <class T, bool kGeneric>
void get_rank(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
  each_lane(mask, [&](int l) {
    d[l] = rank_of(static_cast<std::uint32_t>(shared_value<T, kGeneric>(warp, step, l)));
  });
}

template <class T, template <class, bool> class Op>
Body of_space(Match& match) {
  return sizeof(T) == 4 || match.has(".shared::cluster") ? Op<T, false>::body : Op<T, true>::body;
}
template <class T, bool kGeneric>
struct MapToRank {
  static constexpr Body body = map_to_rank<T, kGeneric>;
};
template <class T, bool kGeneric>
struct GetRank {
  static constexpr Body body = get_rank<T, kGeneric>;
};

#define TO_SHARED "(.shared::cluster|.shared::cta).global"
#define RANK "(.1d|.2d|.3d|.4d|.5d)"
#define GROUP "{.cta_group::1|.cta_group::2}"
#define HINT "{.L2::cache_hint}"
#define PREFETCH_SIZE "{.L2::64B|.L2::128B|.L2::256B}"

constexpr Row kRows[] = {
    {"cp.async.bulk" TO_SHARED ".mbarrier::complete_tx::bytes" HINT,
     "[d:r32], [a:r64], b:r32, [c:r32], l:r64?", select_bytes},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster" HINT,
     "[d:r32], [a:r64], b:r32, [c:r32], l:r16, l:r64?", always<load_bytes<Reach::kCluster, true>>},
    {"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
     "[d:r32], [a:r32], b:r32, [c:r32]", always<copy_to_peer>},
    {"cp.async.bulk.global.shared::cta.bulk_group" HINT, "[d:r64], [a:r32], b:r32, c:r64?",
     always<store_bytes<Kind::kStore>>},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group" HINT ".add.f32", "[d:r64], [a:r32], b:r32, c:r64?",
     always<store_bytes<Kind::kReduce>>},
    {"cp.async.bulk.tensor" RANK GROUP TO_SHARED "{.tile}.mbarrier::complete_tx::bytes" GROUP HINT,
     "[d:r32], [a:r64, list:{r32}], [b:r32], c:r64?", select_box<false>},
    {"cp.async.bulk.tensor" RANK GROUP TO_SHARED
     "{.tile}.mbarrier::complete_tx::bytes.multicast::cluster" GROUP HINT,
     "[d:r32], [a:r64, list:{r32}], [b:r32], l:r16, c:r64?", select_box<true>},
    {"cp.async.bulk.tensor" RANK ".global.shared::cta{.tile}.bulk_group" HINT,
     "[d:r64, list:{r32}], [a:r32], c:r64?", of_rank<store_box<Kind::kStore>>},
    {"cp.reduce.async.bulk.tensor" RANK ".global.shared::cta.add{.tile}.bulk_group" HINT,
     "[d:r64, list:{r32}], [a:r32], c:r64?", of_rank<store_box<Kind::kReduce>>},
    {"cp.async.bulk.prefetch.tensor" RANK ".L2.global{.tile}" HINT, "[a:r64, list:{r32}], c:r64?",
     of_rank<nothing>},
    {"cp.async.bulk.prefetch.L2.global" HINT, "[a:r64], b:r32, c:r64?", always<nothing>},
    {"cp.async.bulk.commit_group", "", always<commit_bulk>},
    {"cp.async.bulk.wait_group{.read}", "i:imm", always<wait_bulk>},

    {"cp.async(.ca|.cg)(.shared|.shared::cta).global" HINT PREFETCH_SIZE, "[d:r32], [a:r64], i:imm, b:r32?",
     always<copy_elements>},
    {"cp.async.commit_group", "", always<commit_copies>},
    {"cp.async.wait_group", "i:imm", always<wait_copy_groups>},
    {"cp.async.wait_all", "", always<wait_all_copies>},
    {"cp.async.mbarrier.arrive{.shared|.shared::cta}.b64", "[a:r32]", always<arrive_after_copies<true>>},
    {"cp.async.mbarrier.arrive.noinc{.shared|.shared::cta}.b64", "[a:r32]",
     always<arrive_after_copies<false>>},

    {"mapa{.shared::cluster}.u32", "d:r32, a:r32, b:r32", of_space<std::uint32_t, MapToRank>},
    {"mapa{.shared::cluster}.u64", "d:r64, a:r64, b:r32", of_space<std::uint64_t, MapToRank>},
    {"getctarank{.shared::cluster}.u32", "d:r32, a:r32", of_space<std::uint32_t, GetRank>},
    {"getctarank{.shared::cluster}.u64", "d:r32, a:r64", of_space<std::uint64_t, GetRank>},
};

}  // namespace

std::span<const Row> copy_rows() {
  return kRows;
}

}  // namespace flashback::emulator
